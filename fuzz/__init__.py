"""Fuzzing of the decoders: kadcrawl's readers of network, disk and user input get malformed bytes.

`target.py` defines a target: a function of one input. The targets are in `datagrams.py` (UDP), `sealed.py` (UDP with a
swarm key), `frames.py` (TCP), `pages.py` (HTTP), `journals.py` and `data_files.py` (disk, with
`data_directories.py`) and `words.py` (URLs, job files, proxy lists).
`targets.py` lists them by name. The targets of datagrams run on a `still_loop.py` and a `silent_transport.py`.

``python -m fuzz`` (`__main__.py`) runs a `campaign.py`: a process per target (`child.py`) under atheris, observed by a
`watch.py`. `corpus.py` keeps the smallest interesting inputs, and the tests run them in plain Python. ``python -m fuzz
mutate`` compares the native link extractor with the Python code on pages of `mutations.py`.
"""
