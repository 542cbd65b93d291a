"""The formats of outputs as JSON Schema, and their pages: pages.jsonl, records.jsonl, the summary, and the status.

Fields, types and descriptions are those of the structs that write the outputs. This module adds what a type cannot
say: when a field is absent, the form of its value, and an example. Tests: tests/docs/test_schemas.py
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import msgspec

from kadcrawl.cli.view.status import PeerFigures, RefusingSiteFigures, SwarmFigures
from kadcrawl.cli.view.summary import PeerSummary, Summary
from kadcrawl.crawl.output.outputs import PageLine, RecordLine
from kadcrawl.link.wire.failure_reasons import explained
from kadcrawl.link.wire.given_order import GivenOrder
from kadcrawl.link.wire.order_messages import MOMENTARY, OrderKind
from kadcrawl.link.wire.peer_row import CrawlLimit
from kadcrawl.link.wire.peer_state import STATE_TEXTS, PeerState
from kadcrawl.settings.page_rules import Role
from kadcrawl.store.last_answer import MIME_CHARS_MAX
from scripts.docs.docstrings import field_docstrings
from scripts.docs.failures import FAILURES, LEFT_OUT
from scripts.docs.markdown import code, page, paragraphs, prose, table

FOLDER = "docs/reference"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"
KEY = "^[0-9a-f]{40}$"
PEER = "^[0-9a-f]{16}$"
URL = "^https?://"
AT_LEAST_0: Mapping[str, Any] = {"minimum": 0}
COUNTS: Mapping[str, Any] = {"additionalProperties": {"type": "integer", "minimum": 0}}


def _advice(reason: str) -> str:
    """Return the advice of the last lines of a crawl about a failure, as a sentence."""
    text = explained(reason).advice
    return f"{text[:1].upper()}{text[1:]}." if text else ""


@dataclass(frozen=True)
class FieldNotes:
    """Facts about a field beside its type."""

    example: Any
    absent: str = ""
    """The condition under which the field is absent, after "absent"."""
    form: Mapping[str, Any] = field(default_factory=dict)
    """Further keywords of its schema."""


@dataclass(frozen=True)
class Format:
    """One output: its structs, the outermost first, and the notes on their fields."""

    name: str
    title: str
    intro: tuple[str, ...]
    notes: Mapping[type, Mapping[str, FieldNotes]]
    examples: tuple[Mapping[str, Any], ...]
    more: tuple[str, ...] = ()
    """Further parts of the page."""

    @property
    def root(self) -> type:
        """The outermost struct."""
        return next(iter(self.notes))


_KEY, _URL = "79ec78efa69117bca907d2a1c34c9a8294a92bdb", "https://example.org/item/7"
_TIME, _PEER = "2026-11-21T10:00:00.123Z", "a6da4c0e7b1f2d38"
_ID = "a6da4c0e7b1f2d3805c1d5a3f0b9e8d7c6b5a493"
_DIGEST = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"

_NO_ANSWER = "if no page is fetched again, and before the first such answer"

PAGES = Format(
    "pages",
    "pages.jsonl",
    (
        "Each peer writes `pages.jsonl` into its directory: one JSON object a line, for each URL that is finished, "
        "fetched or not. With `--recrawl-after` a URL has a line for each visit. A line is complete once it ends with "
        "a newline. The lines of a page that two peers finished have the same `key` and `visit`. With "
        "`--history bloom` and a recrawl, lines of one `key` are about one visit if their `fetched_at` are nearer than "
        "`--recrawl-after` less one grain, and count as two visits otherwise.",
    ),
    {
        PageLine: {
            "key": FieldNotes(_KEY, form={"pattern": KEY}),
            "url": FieldNotes(_URL, form={"pattern": URL}),
            "status": FieldNotes(200, form={"minimum": 100, "maximum": 999}),
            "mime": FieldNotes("text/html"),
            "bytes": FieldNotes(5120, form=AT_LEAST_0),
            "digest": FieldNotes(_DIGEST, form={"pattern": "^(sha1:[A-Z2-7]{32})?$"}),
            "depth": FieldNotes(1, form=AT_LEAST_0),
            "links": FieldNotes(12, form=AT_LEAST_0),
            "fetched_at": FieldNotes(_TIME, form={"pattern": TIME}),
            "ms": FieldNotes(84, form=AT_LEAST_0),
            "peer": FieldNotes(_PEER, form={"pattern": PEER}),
            "warc": FieldNotes("warc/crawl-00001.warc.gz", "without a response", {"pattern": "^warc/"}),
            "offset": FieldNotes(4096, "without a response", AT_LEAST_0),
            "visit": FieldNotes(
                2, "at the first visit, and with `--history bloom`, as no peer knows it then", {"minimum": 1}
            ),
            "unchanged": FieldNotes(
                "not_modified",
                "at a first visit, and if the page has changed",
                {"enum": ["not_modified", "same_digest"]},
            ),
            "simhash": FieldNotes(
                "8f3c0a5512e47b90",
                "without `--simhash`, and for a page without HTML, without a body, or unchanged",
                {"pattern": "^[0-9a-f]{16}$"},
            ),
            "failed": FieldNotes("http_404", "if the URL did not fail", {"pattern": "^[a-z0-9_]+$"}),
            "detail": FieldNotes("Connection refused", "if there is nothing to add"),
            "location": FieldNotes("https://example.org/docs/", "if the response is no redirect"),
            "tried_by": FieldNotes(2, "if this peer alone tried", {"minimum": 2}),
            "via": FieldNotes(_PEER, "if the peer made the request by itself", {"pattern": PEER}),
            "canonical": FieldNotes(
                "https://example.org/item", "without `--canonical honor`, and if the page is no such redirect"
            ),
            "twin": FieldNotes(
                "https://example.org/item/5", "without `--twins skip`, and if the page is no near duplicate"
            ),
            "noindex": FieldNotes(True, "if the page does not ask for it, and if it is unchanged"),
            "role": FieldNotes("detail_request", "if no role rule has the URL", {"enum": list(get_args(Role))}),
            "records": FieldNotes(1, "if there are none", {"minimum": 1}),
            "record_error": FieldNotes(
                "timeout: not done after 10 s", "if no record rule has the URL, or nothing went wrong"
            ),
            "answer_status": FieldNotes(200, _NO_ANSWER, {"const": 200}),
            "answer_mime": FieldNotes("text/html", _NO_ANSWER, {"maxLength": MIME_CHARS_MAX}),
            "answer_bytes": FieldNotes(5120, _NO_ANSWER, AT_LEAST_0),
            "answer_digest": FieldNotes(_DIGEST, _NO_ANSWER, {"pattern": "^sha1:[A-Z2-7]{32}$"}),
            "answer_fetched_at": FieldNotes(_TIME, _NO_ANSWER, {"pattern": TIME}),
            "answer_peer": FieldNotes(_PEER, _NO_ANSWER, {"pattern": PEER}),
            "answer_warc": FieldNotes("warc/crawl-00001.warc.gz", _NO_ANSWER, {"pattern": "^warc/"}),
            "answer_offset": FieldNotes(4096, _NO_ANSWER, AT_LEAST_0),
        }
    },
    (
        {
            "key": _KEY,
            "url": _URL,
            "status": 200,
            "mime": "text/html",
            "bytes": 5120,
            "digest": _DIGEST,
            "depth": 1,
            "links": 12,
            "fetched_at": _TIME,
            "ms": 84,
            "peer": _PEER,
            "warc": "warc/crawl-00001.warc.gz",
            "offset": 4096,
            "role": "detail_request",
            "records": 1,
        },
        {
            "key": _KEY,
            "url": _URL,
            "status": 304,
            "mime": "",
            "bytes": 0,
            "digest": _DIGEST,
            "depth": 1,
            "links": 0,
            "fetched_at": "2026-11-28T10:00:02.415Z",
            "ms": 41,
            "peer": "0b1f2d38a6da4c0e",
            "warc": "warc/crawl-00009.warc.gz",
            "offset": 81920,
            "visit": 1,
            "unchanged": "not_modified",
            "answer_status": 200,
            "answer_mime": "text/html",
            "answer_bytes": 5120,
            "answer_digest": _DIGEST,
            "answer_fetched_at": _TIME,
            "answer_peer": _PEER,
            "answer_warc": "warc/crawl-00001.warc.gz",
            "answer_offset": 4096,
        },
        {
            "key": _KEY,
            "url": _URL,
            "status": None,
            "mime": "",
            "bytes": 0,
            "digest": "",
            "depth": 1,
            "links": 0,
            "fetched_at": _TIME,
            "ms": 0,
            "peer": _PEER,
            "failed": "robots",
        },
    ),
    (
        "## Reasons of failures",
        "The field `failed` has one of these reasons. [Summary](summary.md) and [status](status.md) count them.",
        table(
            ["reason", "meaning", "what to do"],
            [[code(name), prose(text), prose(_advice(name))] for name, text in FAILURES.items()],
        ),
    ),
)

RECORDS = Format(
    "records",
    "records.jsonl",
    (
        "Each peer writes `records.jsonl` into its directory if the job has [record rules](job-file.md#records): one "
        "JSON object a line, for each record. The records of a page have the page's key and time, and stand there "
        "once, after a crash as well. A visit that finds the page changed writes records of the same keys again: the "
        "later `fetched_at` counts.",
    ),
    {
        RecordLine: {
            "key": FieldNotes(f"{_KEY}:0", form={"pattern": r"^[0-9a-f]{40}:\d+$"}),
            "url": FieldNotes(_URL, form={"pattern": URL}),
            "fetched_at": FieldNotes(_TIME, form={"pattern": TIME}),
            "peer": FieldNotes(_PEER, form={"pattern": PEER}),
            "rule": FieldNotes("item"),
            "record": FieldNotes({"title": "A lamp", "price": None, "tags": ["new"]}, form={"type": "object"}),
        }
    },
    (
        {
            "key": f"{_KEY}:0",
            "url": _URL,
            "fetched_at": _TIME,
            "peer": _PEER,
            "rule": "item",
            "record": {"title": "A lamp", "price": None, "tags": ["new"]},
        },
    ),
)

_ORDER_EXAMPLE = {
    "kind": "pause",
    "about": "shop.example.org",
    "value": 1.0,
    "given_at": 1_790_000_000.0,
    "peer": _ID,
    "user": "ann",
}
_ORDER = {
    "kind": FieldNotes(
        "pause", form={"type": "string", "enum": [kind for kind in get_args(OrderKind) if kind not in MOMENTARY]}
    ),
    "about": FieldNotes("shop.example.org"),
    "value": FieldNotes(1.0, form=AT_LEAST_0),
    "given_at": FieldNotes(1_790_000_000.0, form=AT_LEAST_0),
    "peer": FieldNotes(_ID, form={"pattern": KEY}),
    "user": FieldNotes("ann"),
}
_TOTALS = {
    "pages": FieldNotes(30, form=AT_LEAST_0),
    "bytes": FieldNotes(153_600, form=AT_LEAST_0),
    "urls_found": FieldNotes(32, form=AT_LEAST_0),
    "urls_done": FieldNotes(32, form=AT_LEAST_0),
    "urls_failed": FieldNotes({"http_404": 1, "robots": 2}, form=COUNTS),
    "duplicates": FieldNotes(0, form=AT_LEAST_0),
    "left_behind": FieldNotes(0, form=AT_LEAST_0),
    "links_seen": FieldNotes(210, form=AT_LEAST_0),
    "links_left_out": FieldNotes({"path_repeats": 4}, form=COUNTS),
    "peer_messages": FieldNotes(64, form=AT_LEAST_0),
    "revisits": FieldNotes(0, form=AT_LEAST_0),
    "unchanged": FieldNotes(0, form=AT_LEAST_0),
    "records": FieldNotes(5, "if the job has no record rules", AT_LEAST_0),
    "record_errors": FieldNotes(1, "if the job has no record rules", AT_LEAST_0),
    "limit_reached": FieldNotes("", form={"enum": [*get_args(CrawlLimit)]}),
    "paused_sites": FieldNotes(["shop.example.org"]),
    "changed_settings": FieldNotes({"delay": 5.0}, form={"additionalProperties": {"type": "number", "minimum": 0}}),
    "orders": FieldNotes([_ORDER_EXAMPLE]),
    "damaged_journals": FieldNotes([]),
}
_TOTALS_EXAMPLE = {name: note.example for name, note in _TOTALS.items() if not name.startswith("record")}
_LEFT_OUT_PARTS = (
    "## Limits that left out links",
    "The field `links_left_out` counts links by these names. Links to URLs outside the scope are not counted.",
    table(["name", "meaning"], [[code(name), prose(text)] for name, text in LEFT_OUT.items()]),
    "The reasons in `urls_failed` are [those of pages.jsonl](pages.md#reasons-of-failures). A status without a count "
    "of its own is counted as `http_4xx`, `http_5xx` or `http_odd`.",
)

SUMMARY = Format(
    "summary",
    "Summary",
    (
        "`kadcrawl crawl --summary FILE` writes the figures of the whole crawl into FILE when it ends, as one JSON "
        "object. They count everything since the directory was made, except `seconds`. "
        "`kadcrawl summary --json` prints them at any time.",
        "The totals add up, also over the rounds of a recrawl: `urls_found` is `urls_done`, and the URLs that are "
        "still pending, and `left_behind`. The URLs in `urls_failed` are among `urls_done`. After a peer has died for "
        "good, its figures are missing.",
    ),
    {
        Summary: _TOTALS
        | {
            "seconds": FieldNotes(12.5, "in `kadcrawl summary`, which ends no run", AT_LEAST_0),
            "peers": FieldNotes([{"id": _ID, "pages": 30, "urls": 32}]),
            "pages_lost": FieldNotes(0, form=AT_LEAST_0),
            "failed_examples": FieldNotes(
                {"http_404": "https://example.org/gone"}, form={"additionalProperties": {"type": "string"}}
            ),
        },
        GivenOrder: _ORDER,
        PeerSummary: {
            "id": FieldNotes(_ID, form={"pattern": KEY}),
            "pages": FieldNotes(30, form=AT_LEAST_0),
            "urls": FieldNotes(32, form=AT_LEAST_0),
        },
    },
    (
        {
            **_TOTALS_EXAMPLE,
            "seconds": 12.5,
            "peers": [{"id": _ID, "pages": 30, "urls": 32}],
            "pages_lost": 0,
            "failed_examples": {},
        },
    ),
    _LEFT_OUT_PARTS,
)

_PEER_EXAMPLE = {
    "id": _ID,
    "address": "10.0.0.1:4160",
    "state": "crawling",
    "pending": 40,
    "in_flight": 3,
    "lent": 0,
    "borrowed": 0,
    "pages": 30,
    "urls": 72,
    "failed": {"http_404": 1},
    "behind": 0,
    "fingerprints": 0,
    "uptime_s": 61,
}

_REFUSING_EXAMPLE = {"site": "shop.example", "status": 429, "refusals": 3, "wait_s": 212}

STATUS = Format(
    "status",
    "Status",
    (
        "`kadcrawl status --json` prints the state of the swarm: one JSON object. It has the figures of the summary, "
        "and a description of each peer. If no peer of `--data` runs, the figures come from the journals there.",
    ),
    {
        SwarmFigures: _TOTALS
        | {
            "left_behind": FieldNotes(0, form={"const": 0}),
            "peers": FieldNotes([_PEER_EXAMPLE]),
            "state": FieldNotes("crawling"),
            "pending": FieldNotes(40, form=AT_LEAST_0),
            "left": FieldNotes([]),
            "unanswered": FieldNotes(0, form=AT_LEAST_0),
            "refusing": FieldNotes([_REFUSING_EXAMPLE]),
            "refusing_count": FieldNotes(1, form=AT_LEAST_0),
            "next_due_s": FieldNotes(None, form=AT_LEAST_0),
            "seeds": FieldNotes(["https://example.org/"]),
        },
        GivenOrder: _ORDER,
        PeerFigures: {
            "id": FieldNotes(_ID, form={"pattern": KEY}),
            "address": FieldNotes("10.0.0.1:4160"),
            "state": FieldNotes("crawling"),
            **{name: FieldNotes(_PEER_EXAMPLE[name], form=AT_LEAST_0) for name in ("pending", "in_flight")},
            **{
                name: FieldNotes(_PEER_EXAMPLE[name], form=AT_LEAST_0) for name in ("lent", "borrowed", "pages", "urls")
            },
            "failed": FieldNotes({"http_404": 1}, form=COUNTS),
            "records": FieldNotes(5, "if the job has no record rules", AT_LEAST_0),
            "record_errors": FieldNotes(1, "if the job has no record rules", AT_LEAST_0),
            **{
                name: FieldNotes(_PEER_EXAMPLE[name], form=AT_LEAST_0)
                for name in ("behind", "fingerprints", "uptime_s")
            },
        },
        RefusingSiteFigures: {
            "site": FieldNotes("shop.example"),
            "status": FieldNotes(429, form={"enum": [429, 503]}),
            "refusals": FieldNotes(3, form={"minimum": 1}),
            "wait_s": FieldNotes(212, form=AT_LEAST_0),
        },
    },
    (
        {
            **_TOTALS_EXAMPLE,
            "peers": [_PEER_EXAMPLE],
            "state": "crawling",
            "pending": 40,
            "left": [],
            "unanswered": 0,
            "refusing": [_REFUSING_EXAMPLE],
            "refusing_count": 1,
            "next_due_s": None,
            "seeds": ["https://example.org/"],
        },
    ),
    _LEFT_OUT_PARTS,
)

_STATES = """## States

The state of a peer is one of these texts. The state of the swarm is `crawling`, `done` or `paused`, or the state of all
its peers if they wait for the same reason."""

FORMATS = (PAGES, RECORDS, SUMMARY, STATUS)


def generate(root: Path) -> dict[str, str]:
    """Return the schemas, and a page for each."""
    pages = {}
    for each in FORMATS:
        schema = schema_of(root, each)
        pages[f"{FOLDER}/{each.name}.schema.json"] = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        pages[f"{FOLDER}/{each.name}.md"] = _page(root, each)
    return pages


def schema_of(root: Path, output: Format) -> dict[str, Any]:
    """Return the JSON Schema of a format."""
    raw = msgspec.json.schema(output.root)
    definitions = {kind.__name__: kind for kind in output.notes}
    parts = {
        name: _object(root, definitions[name], output.notes[definitions[name]], part)
        for name, part in raw["$defs"].items()
    }
    schema = {"$schema": DIALECT, "title": output.title, **parts.pop(output.root.__name__)}
    schema["examples"] = list(output.examples)
    return schema | ({"$defs": parts} if parts else {})


def _object(root: Path, kind: type, notes: Mapping[str, FieldNotes], part: dict[str, Any]) -> dict[str, Any]:
    texts = field_docstrings(root, kind)
    properties = {}
    for name, form in part["properties"].items():
        note = notes[name]
        form.pop("default", None)
        if note.absent and "anyOf" in form:  # The field is left out in place of null.
            form = next(one for one in form["anyOf"] if one["type"] != "null")
        text = " ".join(texts[name].split())
        absent = f" Absent {note.absent.replace('`', '')}." if note.absent else ""
        properties[name] = {"description": f"{text}{absent}", **form, **note.form, "examples": [note.example]}
    required = [name for name in part["properties"] if not notes[name].absent]
    return {
        "description": " ".join(part["description"].split()),
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _states(root: Path) -> str:
    texts = field_docstrings(root, PeerState)
    shown = {state: text.format(count="N", plural="s") for state, text in STATE_TEXTS.items()}
    return table(["state", "meaning"], [[code(text), prose(texts[state.name])] for state, text in shown.items()])


def _page(root: Path, output: Format) -> str:
    schema = schema_of(root, output)
    objects = {output.root.__name__: schema, **schema.get("$defs", {})}
    parts = [f"The schema is [{output.name}.schema.json]({output.name}.schema.json) (JSON Schema, draft 2020-12)."]
    for kind, notes in output.notes.items():
        what = {RefusingSiteFigures: "site", GivenOrder: "order"}.get(kind, "peer")
        title = "Fields" if kind is output.root else f"Fields of each {what} in `{_user(schema, kind)}`"
        parts += [f"## {title}", _fields(root, kind, notes, objects[kind.__name__])]
    shown = "\n".join(json.dumps(example, ensure_ascii=False) for example in output.examples)
    if output.name in ("summary", "status"):
        shown = json.dumps(output.examples[0], indent=2)
    blocks = [f"```json\n{one}\n```" for one in ([shown] if shown.startswith("{\n") else shown.splitlines())]
    source = f"`{'/'.join(output.root.__module__.split('.'))}.py` and `scripts/docs/schemas.py`"
    states = [] if output is not STATUS else [_STATES, _states(root)]
    return page(output.title, source, *output.intro, *parts, "## Example", *blocks, *states, *output.more)


def _user(schema: Mapping[str, Any], kind: type) -> str:
    reference = f"#/$defs/{kind.__name__}"
    users = [name for name, form in schema["properties"].items() if form.get("items", {}).get("$ref") == reference]
    return "` and `".join(users)


def _fields(root: Path, kind: type, notes: Mapping[str, FieldNotes], described: Mapping[str, Any]) -> str:
    texts = field_docstrings(root, kind)
    rows = []
    for name, form in described["properties"].items():
        note = notes[name]
        mark = f'<a id="{name}"></a>' if "$schema" in described else ""
        example = json.dumps(note.example, ensure_ascii=False)
        shown = code(example) if len(example) < 60 else ""
        meaning = paragraphs(texts[name], root)
        rows.append([f"{mark}{code(name)}", _type(form), meaning, prose(note.absent), shown])
    return table(["field", "type", "meaning", "absent", "example"], rows)


def _type(form: Mapping[str, Any]) -> str:
    if "anyOf" in form:
        return " or ".join(_type(one) for one in form["anyOf"])
    if form["type"] == "array":
        return f"list of {_type(form['items']) if 'type' in form['items'] else 'object'}s"
    if form["type"] == "object" and "additionalProperties" in form:
        return f"object of {_type(form['additionalProperties'])}s"
    return str(form["type"])
