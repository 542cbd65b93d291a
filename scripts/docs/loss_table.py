"""The table of the chances of a loss, as Markdown. The time of a repair is that of the kept campaign.

Tests: tests/docs/test_loss_odds.py
"""

from scripts.docs.figure_blocks import KeptFigures, table
from scripts.docs.loss_odds import NOTICED_S, copies_shown, loss_rows


def losses(kept: KeptFigures) -> str:
    """Return the table of the chances, and the sentence that says where they come from."""
    repair_s = kept["campaign"]["repair_seconds"]["p99"]
    head = ("a peer fails every", "repair", *(f"{copies} copies" for copies in copies_shown()))
    said = (
        f"*Computed by `scripts/docs/loss_odds.py`. The shorter repair is {NOTICED_S:g} s to notice a death, and "
        f"{repair_s:g} s to copy, the 99th percentile in the simulator. The longer repair is an assumption.*"
    )
    return f"{table(head, loss_rows(NOTICED_S + repair_s))}\n\n{said}"
