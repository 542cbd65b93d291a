"""What the dashboard (kadcrawl/web/) shows of a peer and its swarm, gathered when somebody looks.

`source` asks the peer and its swarm. `swarm_view` is what a census told, `facts` makes the document of it, and
`swarm_verdict` the sentence that says whether the crawl is done or why not yet.
"""
