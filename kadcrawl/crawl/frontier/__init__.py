"""The URLs to be fetched, by site, each at the site's pace."""
