"""Text of pages and peers made safe for a person's terminal: it begins no new line and steers no terminal.

Tests: tests/cli/test_log.py, tests/cli/test_command.py
"""


def printable(text: str) -> str:
    """Return the text with a question mark for each invisible character, such as a control character."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "?" for char in text)


def printable_json(text: str) -> str:
    """Return a line of JSON with the same meaning, with such characters escaped."""
    return text if text.isprintable() else "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
