"""The wire: every message peers exchange, its meaning, its limits, and what a repeat of it means.

A message is ``[tag, field, ...]`` in msgpack. Bytes from the network are unpacked with bounded sizes (`unpack`)
and then checked against these types and limits before anyone reads a field; whatever does not fit raises
MalformedError, which blames the sender. Nothing here does I/O.

Datagrams (UDP, at most `DATAGRAM_BYTES_MAX`) carry Ping, FindNode, Leave and their replies; the rest goes by TCP.
"""

from functools import cache
from typing import Annotated, Any, Literal, get_args

import msgpack
from msgspec import Meta, Struct, ValidationError, convert, to_builtins

from kadcrawl.config import Job
from kadcrawl.keys import ID_BYTES

VERSION = 1
"""Of the wire. A peer that hears another version answers nothing and logs it."""
DATAGRAM_BYTES_MAX = 1200
"""Fits an IPv6 path without fragments."""
CONTACTS_MAX = 20
"""Contacts in one reply: k of Kademlia."""
BATCH_MAX = 500
"""Entries in one Offer or Records batch."""
ROWS_MAX = 10_000
"""Peers listed one by one in a wave or the answer to it; no array or map of any message is longer."""
URL_CHARS_MAX = 8192

IdBytes = Annotated[bytes, Meta(min_length=ID_BYTES, max_length=ID_BYTES)]
Host = Annotated[str, Meta(min_length=1, max_length=64)]
Port = Annotated[int, Meta(ge=1, le=65_535)]
Url = Annotated[str, Meta(min_length=1, max_length=URL_CHARS_MAX)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Small = Annotated[int, Meta(ge=0, le=1_000_000)]


class MalformedError(Exception):
    """Bytes that are no message of this wire. The text says what was wrong, for the log."""


class Message(Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """Base of all messages."""


class Contact(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, order=False):
    """Where a peer is: its ID and the IP address and port that serve both UDP and TCP."""

    id: IdBytes
    host: Host
    port: Port

    @property
    def number(self) -> int:
        """The ID as a 160-bit number, for XOR."""
        return int.from_bytes(self.id, "big")

    @property
    def address(self) -> tuple[str, int]:
        return (self.host, self.port)

    def __str__(self) -> str:
        return f"{self.id.hex()[:8]}@{self.host}:{self.port}"


# --- datagrams: small, idempotent, may be lost or repeated -----------------------------------------------------


class Ping(Message, frozen=True):
    """Are you there? Doubles as the heartbeat between siblings. A repeat is another heartbeat."""

    sender: IdBytes
    load: Small


class Pong(Message, frozen=True):
    """I am, and this is my ID and load level (heavy blocks times 100)."""

    sender: IdBytes
    load: Small


class FindNode(Message, frozen=True):
    """Which peers do you know nearest to `target`? A repeat is answered again."""

    sender: IdBytes
    target: IdBytes


class Nodes(Message, frozen=True):
    """The nearest live contacts the sender knows, nearest first."""

    sender: IdBytes
    contacts: Annotated[list[Contact], Meta(max_length=CONTACTS_MAX)]


class Leave(Message, frozen=True):
    """I am going; forget me now instead of after three missed heartbeats. Harmless when repeated."""

    sender: IdBytes


class Left(Message, frozen=True):
    """Forgotten."""

    sender: IdBytes


Datagram = Ping | Pong | FindNode | Nodes | Leave | Left


# --- the link (TCP): what must not be lost -----------------------------------------------------------------------


class Link(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A discovered URL on its way to its owner."""

    url: Url
    depth: Small
    """Links away from the nearest seed, along the path it was found."""
    hops: Small
    """Redirects in a row that led here."""


class Offer(Message, frozen=True):
    """Links for their owner. A repeat finds them known and changes nothing."""

    links: Annotated[list[Link], Meta(max_length=BATCH_MAX)]


class Elsewhere(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The link at `index` of an offer is not mine: ask `owner`."""

    index: Annotated[int, Meta(ge=0, lt=BATCH_MAX)]
    owner: Contact


class Accepted(Message, frozen=True):
    """All links of the offer are journaled here, but for those listed, which belong to others."""

    elsewhere: Annotated[list[Elsewhere], Meta(max_length=BATCH_MAX)]


class Refused(Message, frozen=True):
    """The request was understood and will not be done; `why` is one sentence for a person."""

    why: Annotated[str, Meta(max_length=1000)]


class Hello(Message, frozen=True):
    """A newcomer asks its bootstrap peer for the job. A repeat is answered again."""

    version: Small


class Welcome(Message, frozen=True):
    """The job, and whether the swarm is paused just now."""

    job: Job
    paused: bool


class Counters(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What one peer has done since its directory was made; each number only grows, and they add up over peers."""

    pages: Count = 0
    """URLs fetched, with whatever status."""
    bytes: Count = 0
    """Bodies as received."""
    urls: Count = 0
    """URLs this peer has accepted as their owner."""
    done: Count = 0
    """Of these: finished, fetched or failed."""
    links_seen: Count = 0
    """Links found on pages, repeats included."""
    duplicates: Count = 0
    """Pages finished here that were finished before."""
    peer_messages: Count = 0
    """Messages sent to other peers, datagrams included."""
    failed: Annotated[dict[Annotated[str, Meta(max_length=40)], Count], Meta(max_length=64)] = {}
    """URLs recorded as failed, by reason."""


class Tally(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a part of the swarm has left to do; tallies of disjoint parts add up (see overlay/quiescence.py)."""

    members: Count
    view: Annotated[bytes, Meta(min_length=16, max_length=16)]
    """XOR over the members of H(ID, incarnation, activity counter): equal only if nobody came, went or did anything."""
    pending: Count
    """URLs accepted and not finished that may still be fetched."""
    unacknowledged: Count
    """Links and records on their way to other peers."""
    missing: Count
    """Subtrees that did not answer."""


class PeerRow(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One peer as it describes itself."""

    contact: Contact
    state: Annotated[str, Meta(max_length=20)]
    pending: Count
    in_flight: Count
    uptime_s: Count
    counters: Counters
    allowance: Count
    """Fetches it may still begin of the budget --max-pages."""
    granted: Count
    """Fetches of that budget it has ever been granted."""


class Survey(Message, frozen=True):
    """What is left to do? (termination; aggregated, so it costs the same at any size)"""


class Census(Message, frozen=True):
    """Describe yourselves, one row a peer (status)."""


class Order(Message, frozen=True):
    """Do this: pause, resume, stop (finish what is in flight and exit), or ended (the swarm is quiescent)."""

    verb: Literal["pause", "resume", "stop", "ended"]


class NewSeeds(Message, frozen=True):
    """Widen the scope by these seeds; whoever sends it offers them to their owners as well."""

    urls: Annotated[list[Url], Meta(max_length=BATCH_MAX)]


class Grant(Message, frozen=True):
    """Shares of the budget --max-pages: how many fetches each listed peer is granted in all (crawl/budget.py).

    Totals, not additions, so that a repeat changes nothing. `spent` says that nothing is left for anybody.
    """

    totals: Annotated[dict[IdBytes, Count], Meta(max_length=ROWS_MAX)]
    spent: bool


Question = Survey | Census | Order | NewSeeds | Grant


class Wave(Message, frozen=True):
    """A question for every peer of a subtree: the receiver answers and asks its own buckets below `limit`.

    Every question may be repeated: answering twice changes nothing.
    """

    limit: Annotated[int, Meta(ge=0, le=160)]
    deadline_s: Annotated[float, Meta(gt=0, le=120)]
    """Seconds the answer may take; each level passes on a little less."""
    question: Question


class Answer(Message, frozen=True):
    """The tally of a subtree, and its rows when they were asked for."""

    tally: Tally
    rows: Annotated[list[PeerRow], Meta(max_length=ROWS_MAX)]


# --- moving a range to a peer that came, or from a peer that goes -------------------------------------------------


class PendingRecord(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A URL accepted and not finished, with its retry state."""

    url: Url
    depth: Small
    hops: Small
    tries: Small
    wait_s: Annotated[float, Meta(ge=0, le=86_400)]
    """Seconds until it may be tried again."""


class SiteRecord(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A site's politeness: how long its next request must still wait."""

    site: Annotated[str, Meta(min_length=1, max_length=URL_CHARS_MAX)]
    wait_s: Annotated[float, Meta(ge=0, le=86_400)]


class Records(Message, frozen=True):
    """A batch of history for its new owner. A repeat changes nothing: PENDING < DONE, the later instant wins."""

    done: Annotated[list[IdBytes], Meta(max_length=BATCH_MAX)]
    pending: Annotated[list[PendingRecord], Meta(max_length=BATCH_MAX)]
    sites: Annotated[list[SiteRecord], Meta(max_length=BATCH_MAX)]


class Recorded(Message, frozen=True):
    """The batch is journaled here."""


class Sync(Message, frozen=True):
    """I have come: stop fetching what is mine now, send it to me, and answer when it is all there. May be repeated."""

    newcomer: Contact


class Synced(Message, frozen=True):
    """All of it has been acknowledged by you."""

    records: Count


# --- control: from a person's command to any one peer -------------------------------------------------------------


class GetStatus(Message, frozen=True):
    """The whole swarm, row by row (runs a Census wave)."""


class Status(Message, frozen=True):
    """The job and one row per peer that answered."""

    job: Job
    answer: Answer
    ended: bool
    paused: bool


class Add(Message, frozen=True):
    """Crawl these as well: further seeds. Answered once their owners have them."""

    urls: Annotated[list[Url], Meta(max_length=BATCH_MAX)]


class Command(Message, frozen=True):
    """pause, resume or stop the swarm; leave: only the asked peer goes."""

    verb: Literal["pause", "resume", "stop", "leave"]


class Ok(Message, frozen=True):
    """Done."""


Request = Offer | Hello | Wave | Records | Sync | GetStatus | Add | Command
Reply = Accepted | Refused | Welcome | Answer | Recorded | Synced | Status | Ok


def pack(message: Message) -> bytes:
    """Return the message as bytes of this wire."""
    packed: bytes = msgpack.packb(to_builtins(message, builtin_types=(bytes,)))
    return packed


@cache
def _by_tag(kind: Any) -> dict[object, type[Message]]:
    """Return the message classes of a union, or the one class, by their tags."""
    return {one.__struct_config__.tag: one for one in get_args(kind) or (kind,)}


def _named_in(plain: Any, kind: Any) -> Any:
    """Return the one class of `kind` whose tag `plain` has; msgspec is slow to convert to a union.

    Without such a tag it is `kind` itself, whose conversion will say what is wrong.
    """
    tag = plain[0] if isinstance(plain, list) and plain else None
    return _by_tag(kind).get(tag, kind) if isinstance(tag, str) else kind


def unpack(data: bytes, kind: Any, bytes_max: int) -> Any:
    """Return the message in `data`, which must be of type `kind` (a message class or a union of them).

    Raises MalformedError for anything else: too large, not msgpack, nested too deep, wrong types or counts.
    """
    if len(data) > bytes_max:
        raise MalformedError(f"{len(data)} bytes, above {bytes_max}")
    try:
        plain = msgpack.unpackb(
            data, max_array_len=ROWS_MAX, max_map_len=ROWS_MAX, max_ext_len=0, strict_map_key=True, use_list=True
        )
        return convert(plain, _named_in(plain, kind))
    except ValidationError as error:
        raise MalformedError(str(error)) from None
    except (ValueError, RecursionError, msgpack.UnpackException) as error:
        raise MalformedError(f"not msgpack: {error}") from None
