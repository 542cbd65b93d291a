"""The documentation's tools: generated pages, and the hooks of the site's build.

`python -m scripts.docs` writes the generated pages anew. `make docs` does so, and then builds the site.
"""
