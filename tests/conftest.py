"""Turn off the deadline of property tests in all tests, as machines may be busy."""

from hypothesis import settings

settings.register_profile("kadcrawl", deadline=None)
settings.load_profile("kadcrawl")
