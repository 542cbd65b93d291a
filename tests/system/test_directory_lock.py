"""Test that a directory counts as at rest only if nobody can run a peer in it."""

import errno
import os
from pathlib import Path

import pytest

from kadcrawl.peer.directory import Directory
from kadcrawl.system.directory_lock import held_still, is_running


def test_a_directory_is_in_use_while_its_peer_holds_the_lock(tmp_path: Path) -> None:
    assert not is_running(tmp_path), "no peer has used it yet"
    directory = Directory(tmp_path)
    assert is_running(tmp_path)
    directory.close()
    assert not is_running(tmp_path)


@pytest.mark.parametrize(("error", "may_run"), [(errno.EACCES, True), (errno.EMFILE, True), (errno.ENOENT, False)])
def test_a_peer_may_run_where_the_lock_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int, may_run: bool
) -> None:
    Directory(tmp_path).close()

    def refuse(*arguments: object) -> int:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "open", refuse)
    assert may_run == is_running(tmp_path)
    with held_still(tmp_path) as is_still:
        assert may_run != is_still
