"""Fuzzing: what kadcrawl reads from strangers, from its disk and from people, fed with bytes nobody would write.

Each target is a function of one input (`target`), called in plain Python by the tests and under atheris by
`python -m fuzz`.
"""
