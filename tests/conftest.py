"""For all tests: no example of a property is held to a wall time, as machines may be busy."""

from hypothesis import settings

settings.register_profile("kadcrawl", deadline=None)
settings.load_profile("kadcrawl")
