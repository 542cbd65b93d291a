"""The rules for examples: the reading of a page, the breaches of rules, and the equality of outputs."""

from pathlib import Path

import pytest

from tests.support.examples.compare import begins_with, matches, renewed
from tests.support.examples.page import blocks
from tests.support.examples.plan import (
    CheckJob,
    Plan,
    RunCommand,
    RunProgram,
    RunScript,
    WriteFile,
    plan,
)
from tests.support.examples.repository_commands import read_repository
from tests.support.examples.run_page import NewOutput
from tests.support.examples.update import updated

REPOSITORY = read_repository(Path(__file__).parents[2])


def planned(text: str, is_generated: bool = False) -> Plan:
    return plan(blocks(text), REPOSITORY, is_generated)


def fenced(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```\n"


# --- the page


def test_each_block_is_found_at_its_line() -> None:
    found = blocks("# Title\n\n```console\n$ true\n```\n\n- item\n\n  ```json\n  {}\n  ```\n")
    assert [("console", "$ true\n", 3), ("json", "{}\n", 9)] == [(one.language, one.text, one.line) for one in found]


def test_blocks_in_notes_and_tabs_are_found() -> None:
    found = blocks(
        '!!! note "Look"\n\n    Text.\n\n    === "bash"\n\n        ```sh\n        true\n        ```\n\nText.\n'
    )
    assert [("sh", "true\n", 7)] == [(one.language, one.text, one.line) for one in found]


def test_what_looks_like_a_note_inside_a_block_is_code() -> None:
    assert ['!!! note "x"\n    kept\n'] == [one.text for one in blocks('```text\n!!! note "x"\n    kept\n```\n')]


def test_a_comment_concerns_the_block_right_after_it() -> None:
    found = blocks(
        "<!-- not run: needs a bucket -->\n```sh\ntrue\n```\n\n<!-- columns: 120 -->\n\nText.\n\n```sh\nls\n```\n"
    )
    assert [("needs a bucket", 80), (None, 80)] == [(one.not_run, one.columns) for one in found]
    [wide] = blocks("<!-- columns: 120 -->\n<!-- pace: 1 -->\n```sh\nls\n```\n")
    assert (120, 1) == (wide.columns, wide.pace)


# --- the plan


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```\nls\n```", "no language"),
        ("    kadcrawl status\n", "no language"),
        (fenced("bash", "ls"), "unknown language 'bash'"),
        (fenced("console", "kadcrawl status"), "begins with a prompt"),
        ("```console\n```\n", "no command"),
        (fenced("console", "$ echo $?\n2"), "follows a command"),
        (fenced("text", "$ kadcrawl status"), "holds a command"),
        (fenced("text", "one$ ls"), "holds a command"),
        (fenced("text", "kadcrawl crawl https://example.org/"), "holds a command"),
        (fenced("text", "  kadcrawl status --data crawl-data"), "holds a command"),
        (fenced("text", "pip install kadcrawl"), "holds a command"),
        (fenced("text", "make demo"), "holds a command"),
        (fenced("html", "python -m kadcrawl"), "holds a command"),
        (fenced("json", '{"a": 1'), "not JSON"),
        (fenced('json title="a.json"', '{"a": 1'), "not JSON"),
        (fenced("console", "$ cat a.json | jq ."), "jq is not on every machine"),
        (fenced("console", "$ kill $(pgrep -f kadcrawl)"), "pgrep is not on every machine"),
        (fenced("sh", "sudo systemctl start kadcrawl"), "sudo is not on every machine"),
        (fenced("sh", "kadcrawl start https://example.org/"), "runs until it is stopped"),
        (fenced("console", "$ make no-such-target"), "no target no-such-target"),
        (fenced("console", "$ make test TESTS=tests/no_such"), "there is no tests/no_such"),
        (fenced("sh", "python -m scripts.no_such"), "no module scripts.no_such"),
        (fenced("sh", ".venv/bin/python -m sim.no_such run \\\n  --seeds 3"), "no module sim.no_such"),
        (fenced("console", "$ make help\nSome text"), "show no output"),
        (fenced('sh title="../a.sh"', "ls"), "outside"),
        (fenced('sh title="/etc/a.sh"', "ls"), "outside"),
        (fenced('sh title="six:a.sh"', "ls"), "no machine is called six"),
        ("<!-- not run -->\n" + fenced("sh", "ls"), "say the reason"),
        ("<!-- not run: S3 -->\n" + fenced("sh", "ls"), "say the reason"),
    ],
)
def test_a_block_that_breaks_a_rule_is_a_problem(text: str, message: str) -> None:
    [problem] = planned(text).problems
    assert message in problem.message


@pytest.mark.parametrize(
    "text",
    [
        fenced("text", "kadcrawl/\n  cli/\nkadcrawl is a crawler"),
        fenced("json", '{"a": 1}\n{"a": 2}'),
        fenced("console", "$ make test TESTS=tests/crawl   # some\n$ .venv/bin/pre-commit install"),
        fenced("sh", "python -m sim run --seeds 100\n.ci/run\ngit tag -a v1 -m x"),
        fenced("html", "<a href='/'>x</a>"),
    ],
)
def test_a_block_that_is_only_looked_at_has_no_step(text: str) -> None:
    assert ([], []) == (planned(text).problems, planned(text).steps)


def test_help_in_a_generated_page_may_quote_commands() -> None:
    assert [] == planned(fenced("text", "kadcrawl crawl https://example.org/"), is_generated=True).problems


def test_a_block_that_cannot_run_is_listed_with_its_reason() -> None:
    found = planned("<!-- not run: needs an S3 bucket -->\n" + fenced("fish", "ls"))
    assert ([], [], [(2, "needs an S3 bucket")]) == (found.problems, found.steps, found.not_run)


def test_each_kind_of_block_has_its_step() -> None:
    text = "".join(
        [
            fenced("console", "$ ls"),
            fenced("sh", "make help\nls"),
            fenced("python", "print()"),
            fenced('toml title="two:kadcrawl.toml"', "delay = 2"),
            fenced("toml", "delay = 2"),
            fenced('html title="a/page.html"', "<p>"),
        ]
    )
    kinds = [RunCommand, RunScript, RunProgram, WriteFile, CheckJob, CheckJob, WriteFile]
    assert kinds == [type(step) for step in planned(text).steps]


def test_a_block_with_tests_is_run_by_pytest() -> None:
    [step] = planned(fenced("python", "def test_it():\n    pass")).steps
    assert isinstance(step, RunProgram)
    assert step.has_tests


def command(text: str) -> RunCommand:
    [step] = planned(fenced("console", text)).steps
    assert isinstance(step, RunCommand)
    return step


def test_a_command_goes_on_after_a_backslash_and_its_output_to_the_prompt() -> None:
    step = command("two$ echo a \\\n    b\na b\n\nc\n\n")
    assert ("two", "echo a \\\n    b", ("a b", "", "c")) == (
        step.command.machine,
        step.command.text,
        step.command.output,
    )
    assert (2, 4) == (step.line, step.output_line)


def test_an_exit_code_belongs_to_the_command_before_it() -> None:
    step = command("$ false\nno\n$ echo $?\n3")
    assert (3, ("no",)) == (step.command.exit_code, step.command.output)


@pytest.mark.parametrize(
    ("text", "background"),
    [
        ("$ kadcrawl start https://example.org/", True),
        ("$ KADCRAWL_LOG=DEBUG kadcrawl join --bootstrap 10.0.0.1:4160", True),
        ("$ python serve.py &", True),
        ("$ kadcrawl start --help", False),
        ("$ kadcrawl crawl https://example.org/", False),
        ("$ true && kadcrawl status", False),
    ],
)
def test_peers_run_in_the_background(text: str, background: bool) -> None:
    assert background == command(text).background


# --- outputs


@pytest.mark.parametrize(
    ("shown", "actual"),
    [
        (["30 pages, 0.1 kB, 2.2 s"], ["30 pages, 12.0 MB, 43 s"]),
        (["key deadbeef1, 1:23"], ["key 0123456789ab, 12:03"]),
        (["at 2026-11-25T04:04:28.812Z"], ["at 2027-01-01T00:00:00.000Z"]),
        (["listens on 127.0.0.1:37725"], ["listens on 127.0.0.1:41000"]),
        (['{"ms":1,"offset":1410,"status":200}'], ['{"ms":12,"offset":9,"status":200}']),
        (["a   b"], ["a       b"]),
        (["│ 200 │", "├─────┤"], ["│   200 │", "├───────┤"]),
        (["a", "...", "z"], ["a", "b", "c", "z"]),
        (["a", "...", "z"], ["a", "z"]),
        (["peer ... listens"], ["peer x on y listens"]),
        (['{"url":"https://…/item/7"}'], ['{"url":"https://example.org/item/7"}']),
        (["a"], ["crawl: 3 pages (0.0/s), 0 pending, 0 failed, 2 peers, 0:01", "a", ""]),
        (["crawl: 3 pages (0.0/s), 0 pending, 0 failed, 2 peers, 0:01", "a"], ["a"]),
        (["a"], ["crawl: 1 page (0.5/s), 19 pending, 0 failed, 2 peers, 0:04", "a"]),
        (["a"], ["checking crawl-data/peer-1/warc/a.warc.gz: 1%", "checking crawl-data/peer-1/pages.jsonl", "a"]),
    ],
)
def test_outputs_that_vary_in_figures_are_the_same(shown: list[str], actual: list[str]) -> None:
    assert matches(shown, actual)


@pytest.mark.parametrize(
    ("shown", "actual"),
    [
        (["30 pages"], ["31 pages"]),
        (["30 pages", "done"], ["30 pages"]),
        (["30 pages"], ["30 pages", "done"]),
        (["listens on 10.0.0.1:4160"], ["listens on 10.0.0.1:4161"]),
        (["listens on 10.0.0.1:4160"], ["listens on 10.0.0.2:4160"]),
        (['{"status":200}'], ['{"status":404}']),
        (["a", "...", "z"], ["a", "b"]),
        (["a ... z"], ["a b"]),
        (["status  200"], ["status  2000"]),
        (["2026 pages"], ["2027 pages"]),
        (["deface pages"], ["facade pages"]),
    ],
)
def test_outputs_that_differ_are_told_apart(shown: list[str], actual: list[str]) -> None:
    assert not matches(shown, actual)


def test_an_output_that_goes_on_is_compared_as_far_as_the_page_shows_it() -> None:
    assert begins_with(["a", "b"], ["a", "b", "c"])
    assert not begins_with(["a", "b"], ["a", "c"])


@pytest.mark.parametrize(
    ("shown", "actual", "new"),
    [
        (["a 1 x"], ["a 2 x"], ["a 2 x"]),
        (["took 1.0 s", "old"], ["took 2.0 s", "new"], ["took 1.0 s", "new"]),
        (["a", "...", "y"], ["a", "b", "c", "z"], ["a", "...", "z"]),
        (["a", "...", "z"], ["b", "c", "z"], ["b", "...", "z"]),
        ([], ["a", "b", ""], ["a", "b"]),
        (["a", "b"], [], []),
    ],
)
def test_a_new_output_keeps_the_gaps_and_what_was_right(shown: list[str], actual: list[str], new: list[str]) -> None:
    assert new == renewed(shown, actual)


def test_a_new_output_is_written_below_its_command_as_far_to_the_right() -> None:
    page = "!!! note\n    ```console\n    $ a\n    old\n    old\n    $ b\n    ```\n"
    new = [NewOutput(line=4, count=2, lines=["1"]), NewOutput(line=7, count=0, lines=["2", "", "3"])]
    assert "!!! note\n    ```console\n    $ a\n    1\n    $ b\n    2\n\n    3\n    ```\n" == updated(page, new)
