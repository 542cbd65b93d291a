"""The version, kept apart so that setup can read it without importing the program."""

VERSION = "0.1.0"
