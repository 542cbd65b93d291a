"""How long a peer will need for a number of URLs: predicted by a trained network while it is new, then as measured.

The paper's BP network (P2 2.2): six inputs (five powers and the number of URLs) and the output scaled to [0, 1] by the
least and the greatest of the training, one hidden layer of tanh. Trained by scikit-learn, which only `train` needs (the
extra ``kadcrawl[predict]``); the `Network` that comes of it is a few numbers and predicts without it.

Departures: the paper names 6 and 13 hidden units, we take the 13 of its output formula; it descends sample by sample
along a gradient that belongs to the logistic function (formula 5), we let L-BFGS find the same least squares.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite, tanh

from kadcrawl.balance.batch_partition import TimeModel
from kadcrawl.balance.machine_profile import MachineProfile
from kadcrawl.errors import ConfigError

INPUTS = 6
HIDDEN = 13
HIDDEN_MAX = 1000
WEIGHT_DECAY = 1e-4
"""Weight of the squares of the weights in what is minimised: noise is not learned by heart."""
TRAINING_ROUNDS_MAX = 5000
TOLERANCE = 1e-8
BATCHES_LEAST = 20
"""Of fewer, nothing is learned that holds elsewhere."""
WARM_URLS = 50
"""So many URLs measured weigh as much as the prediction."""
BATCH_MOST = 64
"""URLs in a batch as peers measure it: of more, nothing was learned."""
MEASURED_KEPT = 0.9
"""Of the weight of what was measured before, with each batch: yesterday's sites say little of today's."""


@dataclass(frozen=True, slots=True)
class BatchTiming:
    """What was measured: a peer of these powers took so long for so many URLs."""

    profile: MachineProfile
    urls: int
    seconds: float

    def __post_init__(self) -> None:
        _check(self.urls, self.seconds)


@dataclass(frozen=True, slots=True)
class NeuralNetwork:
    """A trained network: all it takes to predict."""

    least: tuple[float, ...]
    """Of each input in the training, as `MachineProfile.vector` and then URLs; ..."""
    span: tuple[float, ...]
    """... and from there to the greatest (1 where all were the same)."""
    into_hidden: tuple[tuple[float, ...], ...]
    """For each hidden unit, the weights of the inputs and, last, the bias."""
    out_of_hidden: tuple[float, ...]
    """The weights of the hidden units and, last, the bias."""
    least_s: float
    span_s: float

    def seconds(self, profile: MachineProfile, urls: float) -> float:
        """Return how long a peer of `powers` is predicted to need for `urls`; never below 0."""
        return self.time(profile)(urls)

    def time(self, profile: MachineProfile) -> TimeModel:
        """Return URLs -> predicted seconds for a peer of `powers`; it may fall here and there (see `shares.rising`)."""
        inputs = [(x - least) / span for x, least, span in zip(profile.vector, self.least, self.span, strict=False)]
        units = [
            (sum(w * x for w, x in zip(weights, inputs, strict=False)) + weights[-1], weights[-2], out)
            for weights, out in zip(self.into_hidden, self.out_of_hidden, strict=False)
        ]
        least, span, bias = self.least[-1], self.span[-1], self.out_of_hidden[-1]

        def predicted_s(urls: float) -> float:
            scaled = (urls - least) / span
            output = bias + sum(out * tanh(known + weight * scaled) for known, weight, out in units)
            return max(0.0, self.least_s + self.span_s * output)

        return predicted_s


def train_network(batches: Sequence[BatchTiming], *, seed: int, hidden: int = HIDDEN) -> NeuralNetwork:
    """Fit a network to what was measured; the same batches and seed give the same network.

    Raises:
        ConfigError: scikit-learn is not installed, or fewer batches than `BATCHES_LEAST`.
    """
    if len(batches) < BATCHES_LEAST:
        raise ConfigError(f"{len(batches)} batches are too few to learn from: measure {BATCHES_LEAST} or more")
    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPRegressor
        from threadpoolctl import threadpool_limits
    except ImportError:
        raise ConfigError("training needs scikit-learn: pip install 'kadcrawl[predict]'") from None
    rows = [(*batch.profile.vector, float(batch.urls)) for batch in batches]
    least, span = zip(*(_range(column) for column in zip(*rows, strict=True)), strict=True)
    least_s, span_s = _range([batch.seconds for batch in batches])
    inputs = [[(x - low) / wide for x, low, wide in zip(row, least, span, strict=True)] for row in rows]
    network = MLPRegressor(
        hidden_layer_sizes=(hidden,),
        activation="tanh",
        solver="lbfgs",
        alpha=WEIGHT_DECAY,
        max_iter=TRAINING_ROUNDS_MAX,
        tol=TOLERANCE,
        random_state=seed,
    )
    # So small a network is learned several times as fast by one thread as by two that wait for each other.
    with threadpool_limits(1), warnings.catch_warnings():
        # At the last round it is as good as it gets: that is no failure.
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(inputs, [(batch.seconds - least_s) / span_s for batch in batches])
    (into, out), (into_bias, out_bias) = network.coefs_, network.intercepts_
    return NeuralNetwork(
        least=least,
        span=span,
        into_hidden=tuple((*(float(row[unit]) for row in into), float(into_bias[unit])) for unit in range(hidden)),
        out_of_hidden=(*(float(row[0]) for row in out), float(out_bias[0])),
        least_s=least_s,
        span_s=span_s,
    )


def extrapolated(time: TimeModel, most: float = BATCH_MOST) -> TimeModel:
    """Return the function that is `time` up to `most` URLs, and beyond takes as long for each as for those."""

    def bounded_s(urls: float) -> float:
        return time(urls) if urls <= most else time(most) * urls / most

    return bounded_s


class ThroughputModel:
    """How long one peer needs: cold, as predicted; warm, as measured; between, both, by how much was measured."""

    __slots__ = ("_seconds", "_urls", "predicted")

    def __init__(self, predicted: Callable[[float], float | None] | None = None) -> None:
        """`predicted`: None where nobody predicts; then nothing is known of a peer until it was measured."""
        self.predicted = predicted
        self._urls = 0.0
        self._seconds = 0.0

    def note_batch(self, urls: int, seconds: float) -> None:
        """Note that the peer took `seconds` for `urls`; raises ValueError unless both are above 0."""
        _check(urls, seconds)
        self._urls = MEASURED_KEPT * self._urls + urls
        self._seconds = MEASURED_KEPT * self._seconds + seconds

    @property
    def warmth(self) -> float:
        """The weight of what was measured beside what is predicted, 0 to 1."""
        return self._urls / (self._urls + WARM_URLS)

    def seconds(self, urls: float) -> float | None:
        """Return how long the peer will need for `urls`; None if nothing is known of it."""
        predicted_s = self.predicted(urls) if self.predicted is not None else None
        if not self._urls:
            return predicted_s
        measured_s = urls * self._seconds / self._urls
        if predicted_s is None:
            return measured_s
        return self.warmth * measured_s + (1 - self.warmth) * predicted_s


def _check(urls: int, seconds: float) -> None:
    if type(urls) is not int or urls < 1 or not isfinite(seconds) or seconds <= 0:
        raise ValueError(f"{urls!r} URLs in {seconds!r} s: both must be above 0")


def _range(values: Sequence[float]) -> tuple[float, float]:
    least = min(values)
    return least, max(values) - least or 1.0
