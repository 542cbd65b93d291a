"""The experiments, by the names under which they are asked for."""

from sim.papers.assignment import assignment
from sim.papers.experiment import Experiment
from sim.papers.joining import joining
from sim.papers.levels import levels
from sim.papers.powers import powers

EXPERIMENTS: dict[str, Experiment] = {
    "levels": levels,
    "powers": powers,
    "assignment": assignment,
    "joining": joining,
}
"""In the order of the report."""
