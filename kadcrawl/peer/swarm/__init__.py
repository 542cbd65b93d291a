"""The conversations of the whole swarm: its state, its seeds, its page budget, and a person's commands.

`swarm_state` decides which order counts (paused or not), and `state_gossip` brings it to peers that a wave missed.
`wave_answers` is this peer's part in a wave, and `census` a wave that asks for rows. `seeds` adds a person's seeds to
the job, `budget_sharing` shares --max-pages out, and `commands` answers the commands of a person.
"""
