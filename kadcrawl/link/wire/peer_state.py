"""`PeerState`: the state of a peer as it tells others, and the words in which a person reads it.

The wire has the enum and one detail, the number of peers that refuse this one (`PeerRow`, `WorkRequest`). Decisions
compare members; only `state_text` makes words. A state that this release does not know makes a row malformed.

Tests: tests/link/wire/test_peer_state.py, tests/cli/view/test_status.py
"""

from enum import StrEnum


class PeerState(StrEnum):
    """The state of a full peer or a leaf. The values are the words of the wire."""

    STARTING = "starting"
    """The peer has not entered its swarm yet."""
    JOINING = "joining"
    """The peer is entering its swarm, and starts no request yet."""
    CRAWLING = "crawling"
    """The peer has URLs to fetch, or waits for other peers to take the links that it found."""
    CATCHING_UP = "catching_up"
    """The peer owns cells that it may not crawl yet, and has nothing else to do."""
    IDLE = "idle"
    """The peer has nothing to do. Other peers may have."""
    RESTING = "resting"
    """No URL of the swarm is to be fetched until a page is due again."""
    DONE = "done"
    """The swarm has nothing left to do."""
    PAUSED = "paused"
    """A person paused the swarm."""
    DISK_FULL = "disk_full"
    """The free space on the disk is below the reserve."""
    NO_FILES = "no_files"
    """The machine has too many open files."""
    NO_PROXY = "no_proxy"
    """No proxy is alive."""
    NETWORK_FAILING = "network_failing"
    """This peer does not reach the sites that other peers reach, which fetch its pages for it."""
    NO_NETWORK = "no_network"
    """Neither this peer nor another peer reaches any site."""
    LIMIT_REACHED = "limit_reached"
    """The crawl has reached a limit of the whole swarm, and ends."""
    REFUSED = "refused"
    """More known peers refuse this peer's key than are in touch with the peer. `refused_by` is their number."""
    REFUSED_BY_ALL = "refused_by_all"
    """All full peers that a leaf asked refuse its key."""
    NO_PEER = "no_peer"
    """No full peer has answered a leaf lately."""
    STOPPING = "stopping"
    """The peer finishes the requests under way, and exits."""
    LEAVING = "leaving"
    """The peer hands its range over to other peers, and exits."""
    LEFT = "left"
    """The peer is gone, and still shown for its figures."""
    DIED = "died"
    """The process of a peer of a local crawl died. Only its parent reports this state."""
    NOT_RUNNING = "not_running"
    """No process runs the peer. Only a command that reads the peer's directory reports this state."""


STATE_TEXTS: dict[PeerState, str] = {
    PeerState.STARTING: "starting",
    PeerState.JOINING: "joining",
    PeerState.CRAWLING: "crawling",
    PeerState.CATCHING_UP: "catching up",
    PeerState.IDLE: "idle",
    PeerState.RESTING: "resting",
    PeerState.DONE: "done",
    PeerState.PAUSED: "paused",
    PeerState.DISK_FULL: "paused: disk full",
    PeerState.NO_FILES: "paused: too many open files",
    PeerState.NO_PROXY: "waiting for proxies",
    PeerState.NETWORK_FAILING: "network failing: others fetch for it",
    PeerState.NO_NETWORK: "paused: network unreachable",
    PeerState.LIMIT_REACHED: "ending: limit reached",
    PeerState.REFUSED: "refused by {count} known peer{plural}: key changed?",
    PeerState.REFUSED_BY_ALL: "refused by all: key changed?",
    PeerState.NO_PEER: "looking for a peer",
    PeerState.STOPPING: "stopping",
    PeerState.LEAVING: "leaving",
    PeerState.LEFT: "left",
    PeerState.DIED: "died",
    PeerState.NOT_RUNNING: "not running",
}
"""The words in which a person reads each state, in the status, in its JSON and in the summary."""
LEAF_PREFIX = "leaf: "
"""The beginning of these words where a full peer shows one of its leaves."""

MACHINE_PAUSES = frozenset({PeerState.DISK_FULL, PeerState.NO_FILES, PeerState.NO_NETWORK})
"""The peer waits for its machine, and goes on by itself."""
BLOCKED = MACHINE_PAUSES | {
    PeerState.PAUSED,
    PeerState.NO_PROXY,
    PeerState.REFUSED,
    PeerState.REFUSED_BY_ALL,
    PeerState.NO_PEER,
}
"""States of a peer that fetches nothing although the swarm may have pending URLs."""
GONE = frozenset({PeerState.LEFT, PeerState.DIED})
"""The peer is not there any more."""


def state_text(state: PeerState, refused_by: int = 0, *, hosted_leaf: bool = False) -> str:
    """Return the words in which a person reads a state."""
    text = STATE_TEXTS[state].format(count=refused_by, plural="s" if refused_by > 1 else "")
    return LEAF_PREFIX + text if hosted_leaf else text
