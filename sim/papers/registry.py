"""The experiments, by the names under which they are asked for."""

from functools import partial

from sim.papers.assignment import assignment
from sim.papers.experiment import Experiment
from sim.papers.expiring import SIZES_FULL as EXPIRING_FULL, expiring
from sim.papers.joining import joining
from sim.papers.levels import levels
from sim.papers.messages import messages
from sim.papers.output import SIZES_FULL, output
from sim.papers.powers import powers

EXPERIMENTS: dict[str, Experiment] = {
    "output": output,
    "levels": levels,
    "messages": messages,
    "powers": powers,
    "assignment": assignment,
    "joining": joining,
    "expiring": expiring,
}
"""In the order of the report."""
FULL: dict[str, Experiment] = {
    "output": partial(output, sizes=SIZES_FULL),
    "expiring": partial(expiring, sizes=EXPIRING_FULL),
}
"""What some are instead if there is time: up to a thousand real peers, a million URLs a day."""
