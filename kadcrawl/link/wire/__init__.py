"""The wire: one frozen class per message between peers, with its meaning, its limits, and the effect of a repeat.

These files are the specification of the wire. `basics` has the common types and limits, and each `*_messages` file the
messages of one topic; `messages` re-exports them all and adds links, waves and commands. `codec` turns messages into
bytes and back. `map_checks` checks what decoding by type cannot. `census_rows` packs and reads the rows of a census.
"""
