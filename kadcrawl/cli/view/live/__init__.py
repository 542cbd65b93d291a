"""The live view shows a running crawl at the foot of a terminal, and explains its pace at the start.

`samples` keeps the figures of the last minutes, `estimate` computes the bar and the time left, `sites` picks and merges
the figures of sites, and `expectation` makes the sentences for the start. `picture` puts all of it into words, and
`layout` fits the words into columns and rows. `draw` alone loads rich, and draws.
"""
