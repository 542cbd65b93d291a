"""Makes up the document of a dashboard, for any number of peers, from a seed."""

from random import Random
from typing import Any

NOW = 1_796_000_000.0
"""The time of the document, in seconds since 1970."""
CELL_BITS = 16
FAILED = 340
STATES = ("crawling", "crawling", "crawling", "joining", "out of work")
HOSTS = ("docs", "shop", "www", "blog", "forum", "news", "data", "wiki")
REASONS = {
    "robots": "The robots.txt of the site forbids it.",
    "status 404": "The site says that there is no such page.",
    "timeout": "The site did not answer in time.",
    "too large": "The body is larger than --max-body allows.",
}


def document(peers: int, seed: int = 1, *, control: bool = True) -> dict[str, Any]:
    """Return a document of the contract with so many peers."""
    random = Random(seed)
    ids = [f"{random.getrandbits(160):040x}" for _ in range(peers)]
    table = {node_id: _peer(number, random) for number, node_id in enumerate(ids)}
    if peers > 4:
        table[ids[3]] |= {"alive": False, "heard_s": 31.0, "pages_per_s": 0.0}
        table[ids[4]] |= {"kind": "leaf", "cells_owned": None}
    series = _series(ids, random)
    found, done = series["found"][-1], series["done"][-1]
    pages, pending = done - FAILED, found - done
    return {
        "version": 1,
        "now": NOW,
        "run": f"{seed:032x}",
        "crawl": {
            "name": "example.org and friends",
            "state": "crawling",
            "started": NOW - 4_000,
            "partition": "host",
            "history": "exact",
            "cell_bits": CELL_BITS,
            "pages": pages,
            "pages_per_s": sum(rates[-1] for rates in series["rates"].values()),
            "pending": pending,
            "failed": FAILED,
            "found": found,
            "done": done,
            "received_bytes": pages * 41_300,
            "end_in_s": 900.0,
            "verdict": {
                "done": False,
                "word": "working",
                "sentence": f"Not done: {pending:,} URLs pending, {peers} requests under way.",
            },
        },
        "me": ids[0],
        "control": control,
        "peers": table,
        "moves": _moves(ids, random),
        "sites": {f"{HOSTS[number % 8]}{number}.example.org": _site(ids, number, random) for number in range(100)},
        "sites_total": 1_312,
        "queue_counted": NOW - 1.4,
        "failures": {
            reason: {
                "count": 4 ** (len(REASONS) - number),
                "meaning": meaning,
                "samples": [f"https://shop.example.org/{reason.replace(' ', '-')}/{n}" for n in range(5)],
            }
            for number, (reason, meaning) in enumerate(REASONS.items())
        },
        "queue_ages": [
            {"up_to_s": limit, "urls": random.randrange(2_000)} for limit in (10, 60, 600, 3_600, 86_400, None)
        ],
        "events": _events(table, random),
        "sinks": {
            "sqlite:pages.db": {"written": pages - 40, "lag": 40, "lag_s": 1.2, "error": None},
            "parquet:out/": {"written": pages - 900, "lag": 900, "lag_s": 61.0, "error": "The disk is full."},
        },
        "series": series,
    }


def _peer(number: int, random: Random) -> dict[str, Any]:
    rate = random.uniform(1, 9)
    return {
        "name": f"peer-{number + 1}",
        "address": f"10.0.{number // 250}.{number % 250 + 1}:4000",
        "kind": "full",
        "state": STATES[number % len(STATES)],
        "pages": int(rate * 600),
        "pages_per_s": round(rate, 2),
        "pending": random.randrange(4_000),
        "level": round(random.uniform(-3, 5), 2),
        "memory_bytes": random.randrange(40_000_000, 260_000_000),
        "version": "0.9.0" if number % 7 else "0.8.2",
        "heard_s": round(random.uniform(0, 3), 1),
        "cells_owned": random.randrange(3_000),
        "alive": True,
    }


def _site(ids: list[str], number: int, random: Random) -> dict[str, Any]:
    backs_off = number % 9 == 4
    return {
        "pending": random.randrange(1, 5_000),
        "last_status": 429 if backs_off else random.choice([200, 200, 200, 304, 404, None]),
        "delay_s": random.choice([0.5, 1.0, 5.0]),
        "next_in_s": round(random.uniform(0, 5), 1),
        "back_off_s": 240.0 if backs_off else None,
        "back_off_why": "Retry-After of a 429" if backs_off else None,
        "owner": ids[number % len(ids)],
        "order": {5: "paused", 11: "slowed", 17: "excluded"}.get(number),
    }


def _moves(ids: list[str], random: Random) -> dict[str, Any]:
    return {
        str(number): {
            "at": NOW - 4 * (12 - number),
            "kind": "loan" if number % 3 == 0 else "cells",
            "from": random.choice(ids),
            "to": random.choice(ids),
            "count": random.randrange(1, 400),
        }
        for number in range(1, 13)
    }


def _events(table: dict[str, Any], random: Random) -> dict[str, Any]:
    names = [peer["name"] for peer in table.values()]
    kinds = {
        "joined": "{} joined by 10.0.0.1",
        "died": "{} has not been heard for 30 s, so its backups take over 212 cells",
        "cells moved": "{} took 212 cells, of 3,120 URLs",
        "loan": "{} lends 64 URLs of 3 sites",
        "disk full": "{} pauses, as its disk has 95 MB left",
    }
    events = {}
    for number in range(1, 201):
        kind = random.choice(list(kinds))
        events[str(number)] = {
            "at": NOW - 17 * (200 - number),
            "kind": kind,
            "text": kinds[kind].format(random.choice(names)),
        }
    return events


def _series(ids: list[str], random: Random) -> dict[str, Any]:
    points, step = 300, 10
    shown = ids[:8]
    level = {node_id: random.uniform(1, 8) for node_id in shown}
    rates: dict[str, list[float]] = {node_id: [] for node_id in shown}
    others: list[float] = []
    found, done, known, ended = [], [], 100.0, 0.0
    for at in range(points):
        total = 0.0
        for node_id in shown:
            level[node_id] = min(9.0, max(0.2, level[node_id] + random.uniform(-0.6, 0.6)))
            rates[node_id].append(round(level[node_id], 2))
            total += level[node_id]
        if len(ids) > 8:
            others.append(round((len(ids) - 8) * random.uniform(3.4, 4.2), 1))
            total += others[-1]
        ended += total * step
        known = max(ended, known + total * step * (2.2 if at < 120 else 0.6))
        found.append(int(known))
        done.append(int(ended))
    return {
        "step_s": step,
        "t": [int(NOW) - step * (points - 1 - at) for at in range(points)],
        "found": found,
        "done": done,
        "rates": rates | ({"others": others} if others else {}),
    }
