"""Messages of seeds: those of a job, the reach of seeds that the job does not name (crawl/scope/seed_reach.py), and
streams of them (peer/swarm/seed_streams.py).

Tests: tests/link/wire/test_messages.py
"""

from typing import Annotated

from msgspec import Meta

from kadcrawl.link.wire.basics import BATCH_MAX, Count, Message, Url

FINGERPRINT_BYTES = 8
SEGMENT_FINGERPRINTS_MAX = 4_096
"""Fingerprints of one segment."""
SEGMENT_ID_BYTES = 16
SEGMENTS_ASKED_MAX = 16
"""Segments in one message."""
SEGMENTS_MAX = 2**14
"""Limit on the segments of one crawl, whose IDs fit one message."""
STREAM_URLS_MAX = 4_000
"""Seeds in one message."""
STREAM_CHARS_MAX = 1_000_000
"""Characters at which the sender closes a message, so that it fits whatever its seeds."""
STREAM_ID_BYTES = 16
INPUT_BYTES_MAX = 32
"""Bytes of the fingerprint of a file."""

Segment = Annotated[bytes, Meta(min_length=FINGERPRINT_BYTES, max_length=FINGERPRINT_BYTES * SEGMENT_FINGERPRINTS_MAX)]
SegmentId = Annotated[bytes, Meta(min_length=SEGMENT_ID_BYTES, max_length=SEGMENT_ID_BYTES)]
SegmentIds = Annotated[bytes, Meta(max_length=SEGMENT_ID_BYTES * SEGMENTS_MAX)]


class NewSeeds(Message, frozen=True):
    """Further seeds by wave: they widen the scope. The sender offers them to their owners as well. A repeat changes
    nothing.
    """

    urls: Annotated[list[Url], Meta(max_length=BATCH_MAX)]


class NewReach(Message, frozen=True):
    """The reach of further seeds by wave: it widens the scope. A repeat changes nothing."""

    segment: Segment


class GetReach(Message, frozen=True):
    """A peer asks another for segments that it lacks. Answered by GotReach. A repeat is answered again."""

    ids: Annotated[list[SegmentId], Meta(max_length=SEGMENTS_ASKED_MAX)]


class GotReach(Message, frozen=True):
    """The answer to GetReach: the segments among these that the sender has."""

    segments: Annotated[list[Segment], Meta(max_length=SEGMENTS_ASKED_MAX)]


class Add(Message, frozen=True):
    """A command adds seeds. Answered by Added once their owners have them. A repeat is an order for failed seeds."""

    urls: Annotated[list[Url], Meta(max_length=BATCH_MAX)]


class Added(Message, frozen=True):
    """The answer to Add: the owners of these seeds have journaled them, and so have their backups."""

    again: Count = 0
    """Seeds that had failed, and are fetched again."""


class StreamSeeds(Message, frozen=True):
    """A command streams seeds into the swarm by one peer. Answered by SeedsStreamed once their owners have them.

    The first message of a stream may be empty, to ask how far its input was read before. A repeat changes nothing, but
    for seeds that failed in the meantime: they are fetched again.
    """

    stream: Annotated[bytes, Meta(min_length=STREAM_ID_BYTES, max_length=STREAM_ID_BYTES)]
    """A random name of the stream. Until its last message, or a silence, the crawl is not over."""
    urls: Annotated[list[Url], Meta(max_length=STREAM_URLS_MAX)]
    is_last: bool = False
    input: Annotated[bytes, Meta(max_length=INPUT_BYTES_MAX)] = b""
    """The fingerprint of a file, or nothing for an input that cannot be read again from a place in it."""
    offset: Count = 0
    """Bytes of the input before which all seeds were answered: the peer journals this place."""
    lines: Count = 0
    """Lines of the input before that place."""
    only_failed: bool = False
    """The seeds were streamed before: those that failed are fetched again, and the others stay as they are."""


class SeedsStreamed(Message, frozen=True):
    """The answer to StreamSeeds: the owners of these seeds have journaled them, and so have their backups."""

    offset: Count
    """The place up to which the input was read, as the peer knows it."""
    lines: Count
    refused: Count = 0
    """URLs of the message that are not canonical, which are no seeds."""
    again: Count = 0
    """Seeds of the message that had failed, and are fetched again."""
    failed: Count = 0
    """Failed URLs of the whole crawl, in the answer to the first message of a stream."""
