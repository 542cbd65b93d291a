"""The module for zstd: of Python from 3.14 on, before of a package."""

import sys

if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd
