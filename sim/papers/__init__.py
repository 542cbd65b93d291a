"""The experiments of the papers, repeated: findings beside the published numbers.

``python -m sim.papers`` (`__main__.py`) runs the experiments in `registry.py` and writes the report (`report.py`, with
pictures by `drawing.py`). `experiment.py` defines a result: findings, tables and figures.

P1: `levels.py` (load levels, with `level_model.py`, `level_figures.py`, `packing.py`, `table2.py`), `messages.py`
(messages per discovered link), `joining.py` (choice of node IDs, with `newcomers.py`) and `output.py` (pages per
second, with `alike_web.py`). P2: `powers.py` (unlike nodes, with `five_nodes.py` and `drain_run.py`). P3:
`assignment.py` (assigners of URLs, with `assigners.py`, `properties.py`, `workload.py`). P4: `expiring.py` (expiring
filters).

`swarm.py` runs real peers in a simulated world for the experiments that need them.
"""
