"""Commands of the repository, such as `make test`, are not run by the examples: `.ci/run` runs them.

Here they are only checked: the targets, modules, tools and files that a command names must be there.
"""

import configparser
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_GIT: Final = {"clone", "tag", "switch", "commit", "push", "checkout", "worktree"}
_PACKAGES: Final = {"sim": "sim", "scripts": "scripts", "fuzz": "fuzz", "kadcrawl_sim": "sim"}
"""First name of a module -> its folder in the repository."""


@dataclass(frozen=True, slots=True)
class Repository:
    """The facts about the repository that its commands need."""

    root: Path
    targets: frozenset[str]
    tools: frozenset[str]
    """Packages that `make setup` installs."""
    extras: frozenset[str]


def read_repository(root: Path) -> Repository:
    """Return the facts about the repository at this path."""
    config = configparser.ConfigParser()
    config.read(root / "setup.cfg")
    extras = dict(config["options.extras_require"])
    lines = [line for name in ("test", "check", "docs", "papers", "dist") for line in extras[name].split("\n")]
    return Repository(
        root=root,
        targets=frozenset(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(), re.MULTILINE)),
        tools=frozenset(re.split(r"[^\w-]", line, maxsplit=1)[0] for line in lines if line),
        extras=frozenset(extras),
    )


def is_of_the_repository(command: str) -> bool:
    """Return whether the command belongs to the work on the repository."""
    words = _words(command)
    if len(words) >= 3 and _is_python(words[0]) and words[1] == "-m":
        return words[2].partition(".")[0] in _PACKAGES
    if words[:1] == ["git"]:
        return len(words) > 1 and words[1] in _GIT
    tool = words[0].removeprefix(".venv/bin/") if words else ""
    return tool in ("make", ".ci/run", "pre-commit", "ruff", "mypy", "typos", "mkdocs")


def problem(command: str, repository: Repository) -> str | None:
    """Return the fault of a command of the repository, or None."""
    words = _words(command)
    if words[0] == "make":
        return _problem_of_make(words[1:], repository)
    if words[0] == ".ci/run":
        return None if (repository.root / ".ci/run").is_file() else "there is no .ci/run"
    if words[0] == "git":
        return None
    if _is_python(words[0]):
        first, *others = words[2].split(".")
        path = repository.root.joinpath(_PACKAGES[first], *others)
        there = path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()
        return None if there else f"there is no module {words[2]} to run"
    tool = words[0].removeprefix(".venv/bin/")
    return None if tool in repository.tools else f"`make setup` does not install {tool}"


def _problem_of_make(words: list[str], repository: Repository) -> str | None:
    for word in words:
        name, is_variable, value = word.partition("=")
        if not is_variable and word not in repository.targets:
            return f"the Makefile has no target {word}"
        for path in value.split() if name == "TESTS" else ():
            if not (repository.root / path).exists():
                return f"there is no {path}"
    return None


def _words(command: str) -> list[str]:
    """Return the words of a command without the variables before it and the comment behind it."""
    try:
        words = shlex.split(command, comments=True)
    except ValueError:
        words = command.split()
    while words and re.match(r"\w+=", words[0]):
        words.pop(0)
    return words


def _is_python(word: str) -> bool:
    return re.fullmatch(r"(\.venv/bin/)?python3?", word) is not None
