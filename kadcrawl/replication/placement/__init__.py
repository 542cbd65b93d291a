"""The placement of cells on peers (P1 1.2, 1.3).

`placement` computes the holders of a cell. `holdings` is this peer's memory of the cells that it owns or backs up.
`firstdiff_map` finds the cells that a newcomer takes over, and the peers that follow when this peer leaves. It reads
only the cells that move, which `look_counts` counts. `succession` has the messages to those peers. All only decide.
"""
