"""Test that a log whose lines all begin another log counts as its copy, and that no line is lost by that."""

import gzip
from pathlib import Path

import pytest

from kadcrawl.store.log_copies import begins, without_copies
from kadcrawl.store.log_parts import part_path

LINES = [b'{"url":"http://a.example/%d"}\n' % number for number in range(6)]


@pytest.fixture
def made(tmp_path: Path) -> dict[str, Path]:
    """Return the path of a log for each name. It has the lines with these numbers."""

    def log(name: str, numbers: str) -> Path:
        path = tmp_path / name / "pages.jsonl"
        path.parent.mkdir()
        path.write_bytes(b"".join(LINES[int(number)] for number in numbers))
        return path

    logs = {"peer": "0123", "older": "012", "same": "0123", "restored": "014", "other": "123", "empty": "", "none": ""}
    return {name: log(name, numbers) for name, numbers in logs.items()}


def of_one_peer(path: Path) -> bytes:
    return b"peer"


def test_a_log_that_begins_another_log_is_left_out_and_any_other_log_stays(made: dict[str, Path]) -> None:
    kept = without_copies(made.values(), of_one_peer)
    assert [made[name] for name in ("peer", "restored", "other", "empty", "none")] == kept


def test_the_longest_log_stays_wherever_it_comes_and_of_equal_logs_the_first(made: dict[str, Path]) -> None:
    assert [made["same"]] == without_copies([made["older"], made["same"], made["peer"]], of_one_peer)


def test_closed_parts_compare_as_the_whole_log_does(made: dict[str, Path]) -> None:
    part_path(made["same"], 1).write_bytes(LINES[0])
    part_path(made["same"], 2).with_suffix(".jsonl.gz").write_bytes(gzip.compress(LINES[1]))
    made["same"].write_bytes(b"".join(LINES[2:4]))
    assert begins(made["same"], made["peer"])
    assert begins(made["older"], made["same"])
    assert not begins(made["restored"], made["same"])
    assert [made["peer"]] == without_copies([made["peer"], made["same"]], of_one_peer)


def test_equal_logs_of_different_or_unknown_peers_stay(made: dict[str, Path]) -> None:
    logs = [made["peer"], made["same"]]
    assert logs == without_copies(logs, lambda path: path.parent.name.encode())
    assert logs == without_copies(logs, lambda path: None)


def test_a_log_with_a_part_that_is_damaged_or_elsewhere_is_no_copy(made: dict[str, Path]) -> None:
    first = part_path(made["same"], 1)
    first.write_bytes(LINES[0])
    packed = part_path(made["same"], 2).with_suffix(".jsonl.gz")
    packed.write_bytes(gzip.compress(b"".join(LINES[1:4])))
    made["same"].write_bytes(b"")
    assert begins(made["same"], made["peer"])
    (made["same"].parent / "pages.parts.json").write_text(
        f'{{"source":"","parts":[{{"file":"{first.name}","begin":0,"bytes":{len(LINES[0])}}},'
        f'{{"file":"{part_path(made["same"], 2).name}","begin":{len(LINES[0])},"bytes":{3 * len(LINES[1])}}}]}}'
    )
    assert begins(made["same"], made["peer"])
    packed.write_bytes(packed.read_bytes()[:-9])
    assert not begins(made["same"], made["peer"])
    packed.unlink()
    assert not begins(made["same"], made["peer"])
    assert not begins(made["peer"], made["same"])
