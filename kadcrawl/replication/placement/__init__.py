"""The placement of cells on peers (P1 1.2, 1.3).

`placement` computes the holders of a cell. `holdings` is this peer's memory of the cells that it owns or backs up.
`firstdiff_map` finds the cells that a newcomer takes over, and reads only those. All three only decide.
"""
