"""Predicted seconds: scikit-learn trains the network and is not needed to predict, and measurements take over."""

import sys
from dataclasses import replace
from random import Random
from statistics import fmean

import pytest

from kadcrawl.balance.machine_profile import MachineProfile
from kadcrawl.balance.predict import (
    BATCHES_LEAST,
    HIDDEN,
    MEASURED_KEPT,
    TOLERANCE,
    TRAINING_ROUNDS_MAX,
    WARM_URLS,
    WEIGHT_DECAY,
    BatchTiming,
    NeuralNetwork,
    ThroughputModel,
    extrapolated,
    logarithms,
    train_network,
)
from kadcrawl.errors import ConfigError

NODE = MachineProfile(4, 2.4, 4.0, 10.0, 5.0)


def true_s(powers: MachineProfile, urls: float) -> float:
    return 5 + urls * (1 / powers.net_mbps + 0.05)


def batches(count: int = 120, seed: int = 1) -> list[BatchTiming]:
    random = Random(seed)
    made = []
    for _ in range(count):
        powers = MachineProfile(4, random.choice((2.4, 2.6)), 4.0, random.uniform(2, 30), random.uniform(1, 18))
        urls = random.randint(1, 200)
        made.append(BatchTiming(powers, urls, true_s(powers, urls)))
    return made


@pytest.fixture(scope="module")
def network() -> NeuralNetwork:
    return train_network(batches(), seed=1)


def test_a_peer_nobody_measured_is_predicted(network: NeuralNetwork) -> None:
    others = batches(50, seed=2)
    off_s = fmean(abs(network.seconds(batch.profile, batch.urls) - batch.seconds) for batch in others)
    assert off_s < 0.05 * fmean(batch.seconds for batch in others)


def test_the_network_predicts_as_scikit_learns_does(network: NeuralNetwork) -> None:
    from sklearn.neural_network import MLPRegressor  # It takes longer to load than all tests of most modules take.

    rows = [(*logarithms(batch.profile), float(batch.urls)) for batch in batches()]
    seconds = [batch.seconds for batch in batches()]
    scaled = [[(x - a) / b for x, a, b in zip(row, network.least, network.span, strict=True)] for row in rows]
    theirs = MLPRegressor(
        hidden_layer_sizes=(HIDDEN,),
        activation="tanh",
        solver="lbfgs",
        alpha=WEIGHT_DECAY,
        max_iter=TRAINING_ROUNDS_MAX,
        tol=TOLERANCE,
        random_state=1,
    ).fit(scaled, [(each - min(seconds)) / (max(seconds) - min(seconds)) for each in seconds])
    expected = [min(seconds) + (max(seconds) - min(seconds)) * float(each) for each in theirs.predict(scaled)]
    assert expected == pytest.approx([network.seconds(batch.profile, batch.urls) for batch in batches()], rel=1e-9)


def test_inputs_are_scaled_by_the_least_and_the_greatest_of_the_training(network: NeuralNetwork) -> None:
    rows = [(*logarithms(batch.profile), float(batch.urls)) for batch in batches()]
    for index, column in enumerate(zip(*rows, strict=True)):
        assert min(column) == network.least[index]
        # Where all were the same there is no span, and nothing is divided by 0.
        assert (max(column) - min(column) or 1.0) == network.span[index]


def test_the_same_batches_and_seed_give_the_same_network(network: NeuralNetwork) -> None:
    assert network == train_network(batches(), seed=1)
    assert network != train_network(batches(), seed=2)


def test_logarithms_of_the_powers_teach_more_than_the_powers() -> None:
    others = batches(50, seed=2)

    def off_s(logarithmic: bool) -> float:
        networks = [train_network(batches(seed=seed), seed=seed, logarithmic=logarithmic) for seed in range(3, 6)]
        return fmean(
            abs(each.seconds(batch.profile, batch.urls) - batch.seconds) for each in networks for batch in others
        )

    assert off_s(logarithmic=True) < 0.7 * off_s(logarithmic=False)


def test_a_network_of_an_earlier_release_predicts_by_the_powers_themselves() -> None:
    network = train_network(batches(), seed=1, logarithmic=False)
    assert network.least[3] == min(batch.profile.net_mbps for batch in batches())
    assert network.seconds(NODE, 50) == pytest.approx(true_s(NODE, 50), rel=0.1)
    assert network.seconds(NODE, 50) != replace(network, logarithmic=True).seconds(NODE, 50)


def test_hidden_units_are_as_many_as_asked() -> None:
    assert 6 == len(train_network(batches(40), seed=1, hidden=6).into_hidden)


def test_nothing_takes_less_than_no_time(network: NeuralNetwork) -> None:
    assert 0.0 <= network.seconds(MachineProfile(1, 0.1, 0.1, 1e6, 1e6), 0)
    below = replace(network, least_s=-1e6)
    assert 0.0 == below.seconds(NODE, 10)


def test_too_few_batches_teach_nothing() -> None:
    with pytest.raises(ValueError, match="too few"):
        train_network(batches(BATCHES_LEAST - 1), seed=1)
    assert train_network(batches(BATCHES_LEAST), seed=1)


def test_without_scikit_learn_the_error_names_the_extra(
    network: NeuralNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sklearn", "sklearn.exceptions", "sklearn.neural_network"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=r"kadcrawl\[predict\]"):
        train_network(batches(), seed=1)
    assert network.seconds(NODE, 10) > 0


@pytest.mark.parametrize(("urls", "seconds"), [(0, 1.0), (-1, 1.0), (1.5, 1.0), (1, 0.0), (1, -1.0), (1, float("nan"))])
def test_what_cannot_be_measured_is_refused(urls: int, seconds: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        BatchTiming(NODE, urls, seconds)
    with pytest.raises(ValueError, match="above 0"):
        ThroughputModel().note_batch(urls, seconds)


def test_a_cold_peer_is_predicted_and_a_warm_one_measured() -> None:
    pace = ThroughputModel(lambda urls: 10.0 + urls)
    assert 0.0 == pace.warmth
    assert 30.0 == pace.seconds(20)
    pace.note_batch(WARM_URLS, 3.0 * WARM_URLS)
    assert 0.5 == pace.warmth
    assert (30.0 + 60.0) / 2 == pace.seconds(20)
    for _ in range(200):
        pace.note_batch(100 * WARM_URLS, 300.0 * WARM_URLS)
    assert 60.0 == pytest.approx(pace.seconds(20), rel=1e-2)


def test_without_a_prediction_nothing_is_known_until_it_is_measured() -> None:
    pace = ThroughputModel()
    assert pace.seconds(1) is None
    pace.note_batch(4, 2.0)
    assert 5.0 == pace.seconds(10)


def test_a_peer_may_come_to_know_its_powers_after_it_began() -> None:
    pace = ThroughputModel()
    pace.predicted = lambda urls: 10.0 + urls
    assert 30.0 == pace.seconds(20)


def test_beyond_what_was_trained_each_url_takes_as_long_as_those_before() -> None:
    time = extrapolated(lambda urls: urls**2 / 10, 10)
    assert [2.5, 10.0, 100.0] == [time(5), time(10), time(100)]


def test_what_was_measured_long_ago_counts_for_less() -> None:
    pace = ThroughputModel()
    pace.note_batch(10, 10.0)
    pace.note_batch(10, 30.0)
    assert (MEASURED_KEPT * 10 + 30) / (MEASURED_KEPT * 10 + 10) == pace.seconds(1)
    for _ in range(100):
        pace.note_batch(10, 30.0)
    assert 3.0 == pytest.approx(pace.seconds(1), rel=1e-3)
