"""Simulated sites whose pages change."""

from itertools import count

from sim.synthetic_web import SyntheticResponse
from tests.support.sites.sim_pages import WEB_IP

DELAY_S = 0.5
SITES, PAGES = 8, 6


class ChangingPages:
    """Simulate sites whose first page links to all others and whose second page changes all the time."""

    def __init__(self) -> None:
        self._answers = count()

    def address(self, host: str) -> str:
        return WEB_IP

    def answer(self, host: str, target: str, asked: int) -> SyntheticResponse:
        if target == "/robots.txt":
            return SyntheticResponse(404)
        links = "".join(f'<a href="/{page}">x</a>' for page in range(1, PAGES)) if target == "/0" else ""
        text = f"<p>{next(self._answers) if target == '/1' else ''}{links}"
        return SyntheticResponse(200, (("Content-Type", "text/html"),), text.encode())
