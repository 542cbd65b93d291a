"""The crawl of one peer takes a URL from a found link to a finished page.

The life of a URL:

1. *Found* on a page (`content.html_links`) or in a sitemap (`content.sitemap`). `content.link_finder` drops links that
   were sent recently, and links that `scope` excludes.
2. *Offered*: `links.forwarder` sends the link to its owner in a batch. Inside a site the owner is this very peer.
3. *Accepted*: the owner looks the link up in its history (`links.intake`). A new URL is journaled as PENDING, copied to
   the backups and added to the `frontier`. Only then is the link acknowledged.
4. *Ready*: `frontier.frontier` returns an entry when the clock of its site allows, and `crawler` starts an `attempt`.
   The attempt needs the rules of robots.txt (`robots`, `robots_fetch`), `capacity`, and that the `crawl_limits` allow
   it (`page_budget`, `byte_budget`, `crawl_time`).
5. *Fetched*: `fetch` makes one bounded request, perhaps through `proxies`. A passing fault postpones the entry.
   `page_processor` reads every other answer, writes it to the WARC (`output.outputs`), and its links start at 1.
6. *Done*: when all links of the page are acknowledged, the URL is journaled as DONE together with its line in
   `pages.jsonl`. After a crash an unfinished page is still PENDING, and only such pages are fetched again.
7. *Due again*, if the job has a recrawl: `recrawl` decides when, and brings the URL back as PENDING.

If sites share a clock (`clocks`), such as that of an IP address, the attempt first has to have its turn there. The
owner of the clock of a host reads its robots.txt for all peers (`shared_rules`).

`build` makes all parts from a job, and `dependencies` names the parts of a crawler. `pause_reasons` lists the reasons
to start no request; `disk_guard` sets the reason for a full disk.
"""
