"""Test the values that the parent of a local crawl reads of a dead peer whose disk is damaged."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kadcrawl.cli.local.salvage import is_broken, pending_urls
from kadcrawl.peer.job_store import journaled_job
from kadcrawl.store.journal import Journal


@pytest.mark.parametrize("value", ["5", "NULL", "'x'", "x'ff'", "CAST(x'ff' AS TEXT)"])
def test_values_of_other_types_count_as_none(tmp_path: Path, value: str) -> None:
    Journal(tmp_path, 0.0).close()
    with closing(sqlite3.connect(tmp_path / "peer.sqlite", isolation_level=None)) as journal:
        journal.executescript(
            f"""
            DROP TABLE meta; DROP TABLE frontier; CREATE TABLE meta (name, value); CREATE TABLE frontier (url);
            INSERT INTO meta VALUES ('totals', {value}), ('job', {value}), ('pages_begun', {value});
            INSERT INTO frontier VALUES (5), (NULL);
            """
        )
    assert not is_broken(tmp_path)
    assert (journaled_job(tmp_path), list(pending_urls(tmp_path))) == (None, [])
