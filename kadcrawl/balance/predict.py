"""The seconds that a peer will need for a number of URLs: predicted by a trained network at first, later measured.

The paper's BP network (P2 2.2) has six inputs (five powers of the machine, and the number of URLs), one hidden layer of
tanh, and one output. Inputs and output are scaled to [0, 1] by their least and greatest values in the training.
scikit-learn trains the network, and only `train_network` needs it (the extra ``kadcrawl[predict]``). The resulting
`NeuralNetwork` is a few numbers, and predicts without scikit-learn.

Departures: the powers are scaled by their logarithms, as twice the bandwidth is worth as much on a slow line as on a
fast one, and the times of URLs are quotients of powers. The paper names 6 and 13 hidden units, and this module takes
the 13 of its output formula. The paper descends sample by sample along a gradient that belongs to the logistic function
(formula 5). Here L-BFGS finds the same least squares.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite, log, tanh

from kadcrawl.balance.batch_partition import TimeModel
from kadcrawl.balance.machine_profile import MachineProfile
from kadcrawl.errors import ConfigError

INPUTS = 6
HIDDEN = 13
HIDDEN_MAX = 1000
"""Limit on the hidden units of a network that is read from a file."""
WEIGHT_DECAY = 1e-4
"""Weight of the squared weights in the minimized sum, against learning noise by heart."""
TRAINING_ROUNDS_MAX = 5000
"""Limit on the rounds of one training."""
TOLERANCE = 1e-8
BATCHES_LEAST = 20
"""Least batches to train from. A network of fewer batches does not hold elsewhere."""
WARM_URLS = 50
"""Measured URLs that weigh as much as the prediction."""
BATCH_MOST = 64
"""URLs in a batch at most, as peers measure it: the network has learned no larger batches."""
MEASURED_KEPT = 0.9
"""Share of the earlier measurements' weight kept at each batch: yesterday's sites say little of today's."""


@dataclass(frozen=True, slots=True)
class BatchTiming:
    """A measurement: a machine of this profile took so many seconds for so many URLs."""

    profile: MachineProfile
    urls: int
    seconds: float

    def __post_init__(self) -> None:
        _check(self.urls, self.seconds)


@dataclass(frozen=True, slots=True)
class NeuralNetwork:
    """A trained network, complete for predicting."""

    least: tuple[float, ...]
    """The least value of each input in the training: `MachineProfile.vector`, then URLs."""
    span: tuple[float, ...]
    """The greatest less the least value of each input (1 where all values were the same)."""
    into_hidden: tuple[tuple[float, ...], ...]
    """The weights of the inputs and, last, the bias, of each hidden unit."""
    out_of_hidden: tuple[float, ...]
    """The weights of the hidden units and, last, the bias."""
    least_s: float
    span_s: float
    logarithmic: bool = False
    """True if the powers enter by their logarithms. A file of an earlier release does not say so, and is False."""

    def seconds(self, profile: MachineProfile, urls: float) -> float:
        """Return the predicted seconds of a machine of this profile for `urls`, never below 0."""
        return self.time(profile)(urls)

    def time(self, profile: MachineProfile) -> TimeModel:
        """Return URLs -> predicted seconds for a machine of this profile.

        The function may fall here and there (see `batch_partition.monotone`).
        """
        powers = logarithms(profile) if self.logarithmic else profile.vector
        inputs = [(x - least) / span for x, least, span in zip(powers, self.least, self.span, strict=False)]
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


def train_network(
    batches: Sequence[BatchTiming], *, seed: int, hidden: int = HIDDEN, logarithmic: bool = True
) -> NeuralNetwork:
    """Fit a network to measured batches. The same batches and seed give the same network.

    `logarithmic` is False for the powers themselves as inputs, as in the paper.

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
    rows = [
        (*(logarithms(batch.profile) if logarithmic else batch.profile.vector), float(batch.urls)) for batch in batches
    ]
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
    # One thread trains so small a network several times as fast as two threads that wait for each other.
    with threadpool_limits(1), warnings.catch_warnings():
        # A network at the last round is good enough, so this is no failure.
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
        logarithmic=logarithmic,
    )


def logarithms(profile: MachineProfile) -> tuple[float, ...]:
    """Return the logarithms of the powers, in the order of `MachineProfile.vector`."""
    return tuple(map(log, profile.vector))


def extrapolated(time: TimeModel, most: float = BATCH_MOST) -> TimeModel:
    """Return a function that equals `time` up to `most` URLs, and goes on at the same seconds per URL beyond."""
    most_s = time(most)

    def bounded_s(urls: float) -> float:
        return time(urls) if urls <= most else most_s * urls / most

    return bounded_s


class ThroughputModel:
    """The seconds one peer needs: as predicted while cold, as measured when warm, and weighted in between."""

    __slots__ = ("_seconds", "_urls", "predicted")

    def __init__(self, predicted: Callable[[float], float | None] | None = None) -> None:
        """`predicted` returns None while nothing can be predicted. Without it, a peer is unknown until measured."""
        self.predicted = predicted
        self._urls = 0.0
        self._seconds = 0.0

    def note_batch(self, urls: int, seconds: float) -> None:
        """Note that the peer took `seconds` for `urls`. Raises ValueError unless both are above 0."""
        _check(urls, seconds)
        self._urls = MEASURED_KEPT * self._urls + urls
        self._seconds = MEASURED_KEPT * self._seconds + seconds

    @property
    def warmth(self) -> float:
        """The weight of the measurement beside the prediction, 0 to 1."""
        return self._urls / (self._urls + WARM_URLS)

    def seconds(self, urls: float) -> float | None:
        """Return the seconds the peer will need for `urls`, or None while they are unknown."""
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
