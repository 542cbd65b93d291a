"""The figures in the documentation: commands measure them, and docs/figures/ keeps the files that the commands wrote.

`python -m scripts.figures NAME...` measures anew. `python -m scripts.docs` then writes the tables (see
`scripts.docs.figures`), and a test compares them with the files.
"""
