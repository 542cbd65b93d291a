"""The version of kadcrawl, in a file of its own that the build reads without importing the program."""

VERSION = "0.1.0"
