"""Links travel to the peers that own them, and the owner accepts each link once.

`forwarder` sends links in batches and waits until the owners acknowledge them. `recent_links` remembers the links sent
recently, so that most repeats cost no message. `intake` is the owner's side: it checks a link, journals a new URL and
merges the records of other holders.
"""
