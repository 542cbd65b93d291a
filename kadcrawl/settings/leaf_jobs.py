"""Says which jobs have leaves, peers without cells that borrow all their work.

Tests: tests/leaf/test_leaf.py
"""

from kadcrawl.settings.job import Job


def why_no_leaf(job: Job) -> str | None:
    """Return the reason why this job has no leaves, as a sentence for a person, or None if it has."""
    if job.max_bytes is not None:
        return (
            "a crawl with --max-bytes has no leaves, as a leaf cannot prove how many bytes it has received; "
            "join without --leaf"
        )
    return None
