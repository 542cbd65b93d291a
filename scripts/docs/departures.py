"""The formulas, numbered steps and rules of the four papers, each with the label by which its row is found.

docs/explanation/departures.md has a row for each: as in the paper, or a departure.

Tests: tests/docs/test_departures.py
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

STEPS: Final[Mapping[str, Mapping[str, str]]] = {
    "P1": {
        "1.1": "A crawl module (breadth first), a cooperation module and a Kademlia overlay, without a center",
        "1.2 step 1": "Ask the backup, at the second hash, whether the URL is in the history",
        "1.2 step 2": "Drop a known URL, and send an unknown one to the owner, at the first hash",
        "1.2 step 3": "Without an answer choose the owner anew, until one answers",
        "1.2 step 4": "Tell the backup to record the URL",
        "1.2 apart": "The history is kept apart from the owner",
        "1.2 copies": "Several backups by several hashes where failures are likely: asked in order, all updated",
        "1.3.1 map": "A map from firstdiff to a list of hashes of URLs",
        "1.3.1 lookup": "A lookup goes to one list of the map",
        "1.3 only": "Only the history moves",
        "leave 1": "Take the non-empty k-bucket with the smallest i, its neighbors are the set S",
        "leave 2": "n = 0 stop; n = 1 all lists below go there; n > 1 split S by bit i-1 into Left and Right",
        "leave 3a": "Right empty: match the records of list i-1 with Left",
        "leave 3b": "Right has one: list i-1 goes there whole",
        "leave 3c": "Right has more: match the records of list i-1 with Right",
        "leave 4": "Left is the set S of the recursion at i-2",
        "join": "Lists above fd are tested on bit fd, list fd goes whole, the lists below stay",
        "1.4.1 areas": "W = n H: a work area of the peer's own size, blocks of one size",
        "1.4.1 blocks": "URLs beyond W wait, and H of them become a block, which is unpacked when W has room",
        "1.4.1 level": "L = S - Wf / H",
        "1.4.2 joiner": "A joiner learns H, T and the next update from its bootstrap peer",
        "1.4.2 light": "n < (v - lambda) T / H if lambda < v",
        "1.4.2 heavy": "0 < n < (lambda - v) T / H - 1 if v < lambda",
        "1.4.2 update": "All peers update at the same instants, and only a heavy one asks its neighbors and sheds",
        "1.4.2 buckets": "From near to far, the first k-bucket with L_k + L < 0",
        "1.4.2 choice": "In it the first light peer whose level and L are below a preset threshold gets the blocks",
        "2.1": "Output by the number of peers (Fig 4, 5)",
        "2.2 u": "Load ratio u = pending URLs / W, ideally 1",
        "2.2": "Eight unequal peers with and without shedding (Table 2, Fig 6 to 8)",
        "2.3": "CPU, memory and bandwidth of each node with the crawler and without (Table 3)",
    },
    "P2": {
        "1 Hadoop": "The crawler runs on Hadoop, one master and many slaves",
        "1 queues": "Redis queues request, capability and assignment between master and slaves",
        "flow 1": "The master crawls the site and takes URLs out of its pages",
        "flow 2": "The master puts URLs into the queue request, a set drops repeats",
        "flow 3": "All nodes put their powers into the queue capability",
        "flow 4": "The master computes the assignment and puts it into its queue",
        "flow 5": "Each node takes its number of URLs and downloads the pages",
        "flow 6": "Extraction by the rules of each site makes structured records",
        "flow 7": "Records go to HBase",
        "2.1": "The powers: cores, clock, memory, disk, bandwidth, and the number of URLs",
        "(1)": "Min-max normalization of inputs and output",
        "(2)": "Hidden layer of tanh units, 6 by the text",
        "(3)": "Output, a weighted sum of 13 hidden units",
        "(4)": "E = (Y - O)^2 / 2",
        "(5)": "Step of the weights of the hidden layer",
        "(6)": "Step of the weights of the output",
        "2.2 stop": "Training ends below a threshold of the error, and the model predicts the running time",
        "(7)": "Minimize the variance of the predicted times",
        "(8)": "The shares sum to N",
        "(9)": "No share is negative",
        "(10)": "Shares are whole",
        "2.4 step 1": "30 particles, all at N / M, with speeds in [0, 1]",
        "2.4 step 2": "The fitness of each particle",
        "2.4 step 3": "The best position of each particle is that of the greater fitness",
        "2.4 step 4": "So is the best position of all",
        "2.4 step 5": "New speeds and positions",
        "2.4 step 6": "The best of all is the assignment at the end, otherwise go on with step 2",
        "(11)": "Fitness, the variance and two squared penalties",
        "(12)": "V = 0.8 V + 2 r1 (pbest - X) + 2 r2 (gbest - X)",
        "(13)": "X = X + ceil(V)",
        "3.1": "Running time by each power alone (Fig 2 to 7)",
        "3.2": "Five nodes, 500 URLs: 134 s with the shares, 233 s with equal ones",
    },
    "P3": {
        "2.1 nodes": "Client, master and slaves; the master assigns by the powers of the slaves",
        "2.1 links": "Links are detail_request or next_link",
        "2.1 queues": "Redis holds the queues of waiting and of crawled URLs",
        "2.1 records": "Records go to MongoDB",
        "3.1": "Semi-distributed: strong masters in a peer-to-peer net, each with its slaves",
        "3.2 balance": "Each node has its part of the work",
        "3.2 monotonicity": "A node that leaves moves only its own URLs",
        "3.2 consistency": "All nodes see one assignment",
        "(3.1)": "id = hash(url) mod b, in one level",
        "3.2.1 virtual": "t = hash(url) mod a; if node t is alive it takes the URL",
        "3.2.1 real": "Otherwise ID = alive[hash(url) mod b]",
        "4.1": "Breadth first, from links that lead on to links with content",
        "4.2.1": "The crawled queue is checked before each request, for an incremental crawl",
        "pool 1": "Read web pages with proxies, and take many",
        "pool 2": "Verify each",
        "pool 3": "Store those that work, and drop the others",
        "pool 4": "At the maximum stop, verify the stored ones at intervals, drop the dead and refill",
        "pool 5": "Below the maximum go on with step 1",
        "5 (1)": "Open: masters stay a weak spot",
        "5 (2)": "Open: equal power of the slaves is assumed",
    },
    "P4": {
        "1": "A Redis set of fingerprints, which expires as a whole only",
        "2.1 filter": "A bit array of m bits, and k hashes that set and test bits of it",
        "(1)": "A hash hits a bit with 1 / m, where kn < m",
        "(2)": "A bit stays 0 after k hashes: (1 - 1/m)^k",
        "(3)": "A bit stays 0 after n keys: (1 - 1/m)^(kn)",
        "(4)": "A bit is set: 1 less that",
        "(5)": "A new key is taken for known with the k-th power of that",
        "(6)": "The best k is ln 2 times m / n",
        "(7)": "The error of L filters is the product of their errors",
        "2.2 grain": "L filters in order of time, one for each hour, day or month",
        "2.2 expiry": "A filter whose time is over is dropped whole",
        "2.2 seen": "A URL is new if no live filter has it, and then goes into the current one",
        "2.3 step 1": "Redis hash: fingerprints with times of expiry in place of the set",
        "2.3 step 2": "Look the request up in the hash",
        "2.3 step 3": "Known: past its time set a new time and request, otherwise drop",
        "2.3 step 4": "Unknown: request, and write fingerprint and time",
        "3.1 (2)": "Parameters before the start: number of filters, capacity, k, bits as a power of 2, seeds",
        "3.1 (3)": "The keys of the live filters are computed at each check, as the date may roll over",
        "3.1 (4)": "exists: all k bits are set",
        "3.1 (5)": "insert: set all k bits",
        "3.2 seen": "request_seen of Scrapy asks all filters and inserts into the current one",
        "3.2 bits": "bits = ceil(capacity log2(e) log2(1 / error))",
        "4 hours": "Grain of an hour, two filters: hour 3 meets hour 1 again, and not hour 2",
        "4 error": "Error below 1e-4 with k = 6 (Table 2)",
        "4 memory": "Memory beside Redis, up to 6 x 10^8 fingerprints (Fig 5)",
    },
}
"""What each paper says, in our words, by paper and label."""


class Row(NamedTuple):
    """A row of a table of the page."""

    paper: str
    labels: tuple[str, ...]
    cells: tuple[str, ...]
    """The other cells: place for what is as in the paper; theirs, ours, why and measured for a departure."""


def rows(page: str) -> Iterator[Row]:
    """Yield the rows of all tables of the page below the heading of a paper."""
    paper = ""
    for line in page.splitlines():
        if line.startswith("## "):
            paper = line.removeprefix("## ").partition(":")[0]
        elif line.startswith("| ") and paper in STEPS:
            first, *others = (cell.strip() for cell in line.strip().strip("|").split(" | "))
            if first != "section":
                yield Row(paper, tuple(label.strip() for label in first.split(";")), tuple(others))
