"""The figures of the house: sizes, imports, names and sentences of the source, read by `ast` without importing it.

`python -m scripts.house` prints them; `tests/test_house.py` takes the same functions for the rules that must hold.
`source` reads files, `rooms` and `imports` judge imports, `shape` measures sizes and names, `outside` finds
attributes assigned from outside their object, `sentences` judges prose, `waiting` tells decisions from conversations,
`tested` finds the tests of a module.
"""
