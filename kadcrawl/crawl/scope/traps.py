"""URLs that tell by themselves that they come from a trap: a server that makes up ever new URLs. A decision: no I/O.

Three bounds (`Job`) on how a URL is built, after Heritrix's TooManyPathSegmentsDecideRule and
PathologicalPathDecideRule; they end links that grow at each page. And session IDs, of which a server may have a new one
for every answer: they are taken out of the URL, as Heritrix and Nutch do, and not refused with it, since on such sites
each link has one. Only what can hardly be anything else counts as such: a known name with a value as long and as random
as these are, since ``?sid=17`` is a story of an honest site.

Called by the scope and the finder for each new link. A trap that shows in no single URL, like a calendar without end,
is for `Job.site_pages_max` and the depth.
"""

import re
from array import array
from typing import Literal

from kadcrawl.settings.job import Job
from kadcrawl.urls import canonical

Trap = Literal["path_segments", "path_repeats", "query_parameters"]

_ID = r"[0-9A-Za-z,._!~:-]"
_IN_PATH = re.compile(rf";jsessionid={_ID}{{16,}}+(?=[/;]|$)|/\((?:X\(1\))?S\([0-9a-z]{{24}}\)\)(?=/)", re.IGNORECASE)
"""Session IDs in paths, as Java servers and ASP.NET without cookies write them."""
_IN_QUERY = re.compile(
    rf"(?:^|(?<=&))(?:(?:jsessionid|phpsessid)={_ID}{{16,}}+|(?:sid|session_?id|oscsid|zenid)=[0-9a-z]{{26,64}}+"
    r"|cfid=[0-9a-f-]{1,64}+&cftoken=[0-9a-f-]{6,64}+)(?:&|$)",
    re.IGNORECASE,
)
"""Session parameters of servlets and PHP, of phpBB, osCommerce and Zen Cart (whose names others use too), and of
ColdFusion."""


class Traps:
    """The bounds of one job."""

    def __init__(self, job: Job) -> None:
        self._segments_max = job.path_segments_max
        self._repeats_max = job.path_repeats_max
        self._parameters_max = job.query_parameters_max

    def why_not(self, url: str) -> Trap | None:
        """Return the first bound that a canonical URL exceeds, or None."""
        # Slashes in the query count as well at first: it is quicker to see that there are few.
        slashes = url.count("/") - 2
        if slashes > self._repeats_max or slashes > self._segments_max:
            path = url[url.index("/", 8) :].partition("?")[0]
            segments = path[1:].split("/")
            if len(segments) > self._segments_max:
                return "path_segments"
            # What stands in a row so often leaves few segments that differ.
            if len(segments) - len(set(segments)) >= self._repeats_max and _repeats(segments, self._repeats_max):
                return "path_repeats"
        if url.count("&") >= self._parameters_max and url.partition("?")[2].count("&") >= self._parameters_max:
            return "query_parameters"
        return None


def _repeats(segments: list[str], times: int) -> bool:
    """Say whether some of the segments stand in a row and then `times` times more, right after each other.

    They do where each of a number of segments in a row is the same as the one so many further on. Compared are all of
    the path at a time, as the digits of one large number, so 1,000 segments take 1 ms, however they are alike; a
    regular expression takes 17 ms.
    """
    numbers = {segment: number for number, segment in enumerate(dict.fromkeys(segments))}
    digits = array("B" if len(numbers) <= 256 else "H", [numbers[segment] for segment in segments])
    path = int.from_bytes(digits.tobytes(), "little")
    for count in range(1, len(segments) // (times + 1) + 1):
        shift = count * digits.itemsize
        differing = (path ^ (path >> 8 * shift)).to_bytes(len(digits) * digits.itemsize, "little")
        same = bytes(times * shift)
        at = differing.find(same, 0, -shift)
        while at >= 0 and at % digits.itemsize:  # In the middle of a digit.
            at = differing.find(same, at + 1, -shift)
        if at >= 0:
            return True
    return False


def without_session(url: str) -> str:
    """Return a canonical URL without the session IDs in it, or the same URL without any."""
    # Whatever is sought has this in it, and few links do.
    if not ("=" in url and "id=" in url.lower()) and "(S(" not in url:
        return url
    path, mark, query = url.partition("?")
    path = _IN_PATH.sub("", path)
    if query:
        query = _IN_QUERY.sub("", query).removesuffix("&")
    # What is left may not be canonical: "/.;jsessionid=..." is no dot segment, "/." is one.
    plain = path + mark + query if query else path
    return url if plain == url else canonical(plain) or url
