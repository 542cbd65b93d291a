"""The files of prediction: batches and networks survive, and an error says how to mend any other file."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kadcrawl.balance.machine_profile import MachineProfile
from kadcrawl.balance.predict import BatchTiming, NeuralNetwork
from kadcrawl.balance.training_data import (
    BATCH_SIZES,
    BATCHES_FILE,
    TRAINING_BYTES_MAX,
    GrowingBatch,
    append_batch,
    batch_line,
    load_batches,
    load_network,
    save_network,
)
from kadcrawl.errors import ConfigError

NODE = MachineProfile(4, 2.4, 4.0, 10.0, 5.0)
NETWORK = NeuralNetwork((0.0,) * 6, (1.0,) * 6, ((0.1,) * 7, (0.2,) * 7), (1.0, -1.0, 0.5), 0.5, 100.0)
GOOD = {"cores": 1, "clock_ghz": 1.0, "memory_gb": 1.0, "net_mbps": 1.0, "disk_mbps": 1.0, "urls": 1, "seconds": 1.0}


def test_a_batch_grows_through_all_sizes_and_begins_again() -> None:
    growing = GrowingBatch()
    grown = [each for _ in range(3 * BATCH_SIZES[-1]) if (each := growing.measured(1, 0.5)) is not None]
    assert [(size, size / 2) for size in BATCH_SIZES] * 3 == grown


def test_a_quick_peer_skips_sizes_and_counts_what_it_has() -> None:
    growing = GrowingBatch()
    assert growing.measured(BATCH_SIZES[0] - 1, 1.0) is None
    assert (BATCH_SIZES[1] + 3, 3.0) == growing.measured(BATCH_SIZES[1] + 4 - BATCH_SIZES[0], 2.0)
    assert growing.measured(1, 1.0) is None
    assert (1_000 + BATCH_SIZES[1] + 4, 5.0) == growing.measured(1_000, 1.0)
    assert (BATCH_SIZES[0], 1.0) == growing.measured(BATCH_SIZES[0], 1.0)


def test_batches_of_many_peers_are_read_together(tmp_path: Path) -> None:
    written = [BatchTiming(replace(NODE, cores=number), 10 * number, 1.5) for number in range(1, 4)]
    for number, batch in enumerate(written):
        (tmp_path / f"peer-{number}").mkdir()
        (tmp_path / f"peer-{number}" / BATCHES_FILE).write_bytes(batch_line(batch))
    assert (written, 0) == load_batches([tmp_path])
    assert (written[:2], 0) == load_batches([tmp_path / "peer-0", tmp_path / "peer-1"])


def test_half_a_line_at_the_end_is_left_out(tmp_path: Path) -> None:
    whole = batch_line(BatchTiming(NODE, 8, 1.0))
    (tmp_path / BATCHES_FILE).write_bytes(whole + whole[:-1])
    assert ([BatchTiming(NODE, 8, 1.0)], 0) == load_batches([tmp_path])
    (tmp_path / BATCHES_FILE).write_bytes(whole * (TRAINING_BYTES_MAX // len(whole) + 9))
    assert TRAINING_BYTES_MAX // len(whole) == len(load_batches([tmp_path])[0])


def test_half_a_line_spoils_no_other(tmp_path: Path) -> None:
    path, one, other = tmp_path / BATCHES_FILE, BatchTiming(NODE, 8, 1.0), BatchTiming(NODE, 16, 2.0)
    append_batch(one, path)
    with path.open("ab") as file:
        file.write(batch_line(one)[:-9])
    append_batch(other, path)
    append_batch(one, path)
    assert ([one, other, one], 1) == load_batches([tmp_path])


def test_a_file_of_batches_does_not_grow_for_ever(tmp_path: Path) -> None:
    path, one = tmp_path / BATCHES_FILE, BatchTiming(NODE, 8, 1.0)
    path.write_bytes(b"\n" * TRAINING_BYTES_MAX)
    append_batch(one, path)
    assert TRAINING_BYTES_MAX == path.stat().st_size


def test_where_nothing_was_measured_it_is_said_how_to(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--balance predictive first"):
        load_batches([tmp_path])


@pytest.mark.parametrize(
    "change",
    [
        {"urls": 0},
        {"urls": 1.5},
        {"seconds": 0.0},
        {"seconds": -1.0},
        {"seconds": None},
        {"cores": 0},
        {"net_mbps": "fast"},
        {"disk_mbps": 1e300},
        {"more": 1},
        {"urls": 10**400},
        {"cores": 10**400},
        {"seconds": 10**400},
        {"memory_gb": 10**400},
    ],
)
def test_a_line_that_is_no_batch_is_left_out_and_counted(tmp_path: Path, change: dict[str, object]) -> None:
    good = json.dumps(GOOD)
    (tmp_path / BATCHES_FILE).write_text(f"{good}\n{json.dumps({**GOOD, **change})}\n{good}\n")
    found, skipped = load_batches([tmp_path])
    assert (2, 1) == (len(found), skipped)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"seconds": 1e999}', "\x00\xff", "[" * 100_000, "NaN"])
def test_what_is_no_line_at_all_is_left_out_and_counted(tmp_path: Path, text: str) -> None:
    good = json.dumps(GOOD).encode()
    (tmp_path / BATCHES_FILE).write_bytes(text.encode("latin-1") + b"\n" + good + b"\n")
    found, skipped = load_batches([tmp_path])
    assert (1, 1) == (len(found), skipped)


def test_a_network_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "network.json"
    save_network(NETWORK, path)
    assert NETWORK == load_network(path)
    assert NETWORK.seconds(NODE, 7) == load_network(path).seconds(NODE, 7)


def test_a_network_of_an_earlier_release_is_read_as_one_of_the_powers_themselves(tmp_path: Path) -> None:
    path = tmp_path / "network.json"
    for logarithmic in (True, False):
        save_network(replace(NETWORK, logarithmic=logarithmic), path)
        assert logarithmic is load_network(path).logarithmic
    written = json.loads(path.read_bytes())
    del written["logarithmic"]
    path.write_text(json.dumps(written))
    assert NETWORK == load_network(path)
    assert not load_network(path).logarithmic


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"least": [0.0] * 5}, "6 inputs"),
        ({"span": [1.0] * 7}, "6 inputs"),
        ({"span": [0.0] * 6}, "above 0"),
        ({"span_s": -1.0}, "above 0"),
        ({"into_hidden": []}, "hidden units"),
        ({"into_hidden": [[0.1] * 6] * 2}, "hidden units"),
        ({"into_hidden": [[0.1] * 7] * 1001}, "hidden units"),
        ({"out_of_hidden": [0.1]}, "a bias"),
        ({"least_s": "soon"}, "float"),
        ({"least_s": 10**400}, ""),
    ],
)
def test_a_network_that_cannot_predict_is_refused(tmp_path: Path, change: dict[str, object], why: str) -> None:
    path = tmp_path / "network.json"
    save_network(NETWORK, path)
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **change}))
    with pytest.raises(ConfigError, match=f"is no network: .*{why}.*; make one with kadcrawl train"):
        load_network(path)


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"[1, 2]", b"\xff\x00", b"NaN", b"[" * 100_000, b'{"more": ' + b"[" * 100_000]
)
def test_a_file_that_is_no_network_is_refused(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "network.json"
    path.write_bytes(text)
    with pytest.raises(ConfigError, match="make one with kadcrawl train"):
        load_network(path)


def test_a_file_that_is_not_there_or_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read the network"):
        load_network(tmp_path / "nothing")
    with pytest.raises(ConfigError, match="cannot write the network"):
        save_network(NETWORK, tmp_path / "nowhere" / "network.json")
