"""Builds the sdist and the wheel, and tries the wheel as somebody who has only that (``python -m scripts.dist``)."""
