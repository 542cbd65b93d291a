"""The experiments, by the names under which they are asked for."""

from functools import partial

from .assignment import assignment
from .balancing import PAGES_PER_PEER_LARGE, SIZES_LARGE, balancing
from .experiment import Experiment
from .expiring import SIZES_FULL as EXPIRING_FULL, expiring
from .joining import joining
from .leaves import leaves
from .levels import levels
from .messages import messages
from .output import SIZES_FULL, output
from .powers import powers
from .revisits import ASKED_QUICK, QUICK_S, revisits
from .revisits_run import DAY_S
from .table2_peers import HOURS_FULL as TABLE2_FULL, HOURS_QUICK as TABLE2_QUICK, table2

EXPERIMENTS: dict[str, Experiment] = {
    "output": output,
    "table2": table2,
    "levels": levels,
    "balancing": balancing,
    "messages": messages,
    "powers": powers,
    "assignment": assignment,
    "leaves": leaves,
    "joining": joining,
    "revisits": revisits,
    "expiring": expiring,
}
"""The experiments by name, in the order of the report."""
LARGE: dict[str, Experiment] = {
    "table2-unscaled": partial(table2, speed=1.0),
    "balancing-256": partial(balancing, sizes=SIZES_LARGE, pages_per_peer=PAGES_PER_PEER_LARGE),
}
"""Experiments that run only with --full, or if they are asked for by name."""
QUICK: dict[str, Experiment] = {
    "table2": partial(table2, hours=TABLE2_QUICK),
    "levels": levels,
    "messages": partial(messages, is_short=True),
    "revisits": partial(revisits, day_s=QUICK_S, hour_s=QUICK_S, asked=ASKED_QUICK),
    "expiring": expiring,
}
"""Experiments of some seconds, whose aims `.ci/run` checks: some of them in a shorter form."""
FULL: dict[str, Experiment] = {
    "output": partial(output, sizes=SIZES_FULL),
    "table2": partial(table2, hours=TABLE2_FULL),
    "revisits": partial(revisits, day_s=DAY_S),
    "expiring": partial(expiring, sizes=EXPIRING_FULL),
}
"""Larger versions of some experiments: up to a thousand real peers, a million URLs a day."""
