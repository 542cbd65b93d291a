"""What a person sees: progress, tables, the summary, the status, and why a URL is crawled or not."""
