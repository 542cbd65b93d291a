"""New outputs are written into a page, below the commands that printed them."""

from collections.abc import Sequence

from tests.support.examples.run_page import NewOutput


def updated(markdown: str, new_outputs: Sequence[NewOutput]) -> str:
    """Return the page with its outputs replaced, and indented as they were."""
    lines = markdown.split("\n")
    for new in sorted(new_outputs, key=lambda output: output.line, reverse=True):
        begin = new.line - 1
        prompt = lines[begin - 1]
        indent = prompt[: len(prompt) - len(prompt.lstrip(" "))]
        lines[begin : begin + new.count] = [f"{indent}{line}".rstrip() for line in new.lines]
    return "\n".join(lines)
