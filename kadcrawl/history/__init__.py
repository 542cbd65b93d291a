"""What a peer knows of the URLs it owns: which were met, which are still to do, and what must survive a crash.

`schema` is the SQLite file, `store` the one door to it, `page_log` the file people read. A URL enters as PENDING,
with its text, and becomes DONE once, when only its key stays. Nothing is acknowledged before the group commit that
holds it is on disk (`Store.durable`).
"""
