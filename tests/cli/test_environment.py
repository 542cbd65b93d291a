"""Test that each option can be given by its environment variable, and which of several sources wins."""

from pathlib import Path
from typing import Any

import click
import pytest
from click.core import ParameterSource
from click.testing import CliRunner

from kadcrawl.cli.app import main
from kadcrawl.cli.environment import PREFIX, unread, variable_of
from kadcrawl.cli.group import group_for

OPTIONS = [
    (name, option)
    for name, command in main.commands.items()
    for option in command.params
    if isinstance(option, click.Option)
]
VALUES = {
    "--seeds": ("a.txt", "b.txt"),
    "--peers": ("3", "4"),
    "--in-process": ("3", "4"),
    "--summary": ("a.json", "b.json"),
    "--data": ("here", "there"),
    "--allow-network": ("10.0.0.0/8", "10.1.0.0/16"),
    "--job": ("a.toml", "b.toml"),
    "--contact": ("a@b.c", "d@e.f"),
    "--headers": ("Accept-Language: de, en", "X-A: b"),
    "--user-agent": ("one", "two"),
    "--robots-token": ("one", "two"),
    "--ca-file": ("a.pem", "b.pem"),
    "--name": ("one", "two"),
    "--scope": ("any", "domain"),
    "--include": ("/a/", "/b/"),
    "--exclude": ("/a/", "/b/"),
    "--max-depth": ("3", "4"),
    "--canonical": ("honor", "ignore"),
    "--nofollow": ("ignore", "obey"),
    "--twins": ("skip", "follow"),
    "--max-pages": ("3", "none"),
    "--max-bytes": ("3MB", "none"),
    "--max-time": ("3h", "none"),
    "--max-site-pages": ("3", "4"),
    "--max-path-queries": ("3", "4"),
    "--max-path-segments": ("3", "4"),
    "--max-path-repeats": ("4", "5"),
    "--max-parameters": ("3", "4"),
    "--session-ids": ("keep", "strip"),
    "--strip-parameters": ("utm", "none"),
    "--retries": ("4", "5"),
    "--network-wait": ("3 min", "4 min"),
    "--delay": ("3s", "500 ms"),
    "--delay-factor": ("3", "4"),
    "--delay-most": ("3 min", "4 min"),
    "--refusals": ("4", "5"),
    "--partition": ("domain", "host"),
    "--recrawl-after": ("7 days", "12h"),
    "--recrawl-least": ("7 days", "12h"),
    "--recrawl-most": ("7 days", "12h"),
    "--history": ("bloom", "exact"),
    "--grain": ("1 day", "12h"),
    "--calendar-grain": ("week", "month"),
    "--filters": ("rbloom", "pybloom"),
    "--balance": ("off", "level"),
    "--copies": ("4", "5"),
    "--solver": ("pso", "exact"),
    "--block": ("30", "40"),
    "--update": ("3s", "500 ms"),
    "--proxies": ("https://a.example/list", "https://b.example/list"),
    "--proxy-judge": ("https://a.example/", "https://b.example/"),
    "--key-file": ("a.key", "b.key"),
    "--fetches": ("3", "4"),
    "--network": ("a.net", "b.net"),
    "--power": ("cores=3", "cores=4"),
    "--memory": ("64MB", "128MB"),
    "--limit": ("body_bytes_max=10MB", "redirects_max=3"),
    "--sink": ("sqlite:a.db", "sqlite:b.db"),
    "--secrets": ("a.toml", "b.toml"),
    "--log-format": ("json", "text"),
    "--log-level": ("DEBUG", "error"),
    "--metrics": ("127.0.0.1:5000", "0"),
    "--web": ("127.0.0.1:5000", "0"),
    "--traces": ("http://127.0.0.1:4318", "http://[::1]:4318"),
    "--trace-share": ("0.5", "1"),
    "--top": ("3", "4"),
    "--listen": ("127.0.0.1:5000", ":5001"),
    "--wait": ("30s", "10m"),
    "--bootstrap": ("10.0.0.1:4160", "10.0.0.2:4160"),
    "--hook": ("a:b", "c:d"),
    "--peer": ("10.0.0.1:4160", "10.0.0.2:4160"),
    "--reason": ("dns", "tls"),
    "--site": ("a.example", "b.example"),
    "--url": ("https://a.example/", "https://b.example/"),
    "--page": ("a.html", "b.html"),
    "--to": ("sqlite:a.db", "sqlite:b.db"),
    "--output": ("a.net", "b.net"),
    "--seed": ("3", "4"),
}
"""Two values of each option that takes a value, none of them its default."""


def parsed(name: str, option: click.Option, arguments: list[str], cwd: Path) -> tuple[Any, ParameterSource | None]:
    """Return the value of an option, and where it is from, in a command line of what else the command requires."""
    command = main.commands[name]
    for other in command.params:
        if isinstance(other, click.Option) and other.required and other is not option:
            arguments = [*arguments, other.opts[0], VALUES[other.opts[0]][0]]
        elif isinstance(other, click.Argument) and other.required:
            takes_file = isinstance(other.type, click.Path) and not other.type.dir_okay
            said = other.type.choices[0] if isinstance(other.type, click.Choice) else str(cwd)
            arguments = [*arguments, "new.key" if takes_file else said]
    assert option.name is not None
    try:
        context = command.make_context(name, [*arguments])  # click takes the arguments out of the list.
    except click.BadParameter as error:
        return str(error), None
    return context.params.get(option.name), context.get_parameter_source(option.name)


def ids(value: object) -> str:
    return value.opts[0] if isinstance(value, click.Option) else str(value)


@pytest.mark.parametrize(("name", "option"), OPTIONS, ids=ids)
def test_an_option_can_be_given_by_its_variable_and_the_command_line_wins(
    name: str, option: click.Option, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    flag = option.opts[0]
    one, two = ("1", "0") if option.is_flag else VALUES[flag]
    said_one = [flag] if option.is_flag else [flag, one]
    by_flag, is_read = parsed(name, option, said_one, tmp_path)
    assert is_read or flag == "--ca-file", by_flag  # There is no such file, and the two ways name it.
    monkeypatch.setenv(variable_of(option), one)
    by_variable, source = parsed(name, option, [], tmp_path)
    assert (by_flag, is_read and ParameterSource.ENVIRONMENT) == (by_variable, source)
    monkeypatch.setenv(variable_of(option), two)
    other, _ = parsed(name, option, [], tmp_path)
    assert other != by_variable, "it is the value that counts"
    assert (by_flag, is_read) == parsed(name, option, said_one, tmp_path)
    monkeypatch.setenv(variable_of(option), "")
    assert ParameterSource.ENVIRONMENT is not (not option.required and parsed(name, option, [], tmp_path)[1])


def test_variables_are_named_for_their_options_and_none_has_two_meanings() -> None:
    by_variable: dict[str, set[str]] = {}
    for _, option in OPTIONS:
        by_variable.setdefault(variable_of(option), set()).add(option.opts[0])
    shared = {name: flags for name, flags in by_variable.items() if len(flags) > 1}
    assert {"KADCRAWL_SINK": {"--sink", "--to"}} == shared
    assert "--max-pages" in by_variable["KADCRAWL_MAX_PAGES"]
    assert not by_variable.keys() & {"KADCRAWL_KEY", "KADCRAWL_PROFILE"}, "those have no option"
    assert not [name for name in by_variable if name.startswith("KADCRAWL_SECRET_")]


def test_an_option_that_can_be_repeated_takes_several_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {option.opts[0]: option for name, option in OPTIONS if name == "crawl"}
    monkeypatch.setenv("KADCRAWL_INCLUDE", "/a/ /b/")
    monkeypatch.setenv("KADCRAWL_LIMIT", "body_bytes_max=10MB redirects_max=3")
    monkeypatch.setenv("KADCRAWL_HEADERS", "X-A: b c\nX-D: e")
    assert ("/a/", "/b/") == parsed("crawl", options["--include"], [], tmp_path)[0]
    limits = parsed("crawl", options["--limit"], [], tmp_path)[0]
    assert (("body_bytes_max", 10_000_000), ("redirects_max", 3)) == limits
    headers = parsed("crawl", options["--headers"], [], tmp_path)[0]
    assert 2 == len(headers)
    assert "b c" in str(headers[0])


def run(*arguments: str, **variables: str) -> str:
    done = CliRunner().invoke(main, arguments, env=variables)
    assert 2 == done.exit_code
    return done.output


def test_the_environment_wins_over_the_job_file_and_a_wrong_value_names_its_option(tmp_path: Path) -> None:
    job = tmp_path / "job.toml"
    job.write_text("seeds = ['http://127.0.0.1:9/']\nbalance = 'drain'\n")
    said = run("crawl", "--data", str(tmp_path / "data"), KADCRAWL_JOB=str(job), KADCRAWL_SOLVER="pso")
    assert "solver pso divides blocks by predicted times" in said, "the file's balance and this solver"
    said = run("crawl", "http://127.0.0.1:9/", "--data", str(tmp_path / "data"), KADCRAWL_MAX_PAGES="many")
    assert "Invalid value for '--max-pages'" in said


def test_no_secret_of_a_variable_is_shown(tmp_path: Path) -> None:
    for variable, value in (
        ("KADCRAWL_SINK", "nonsense://user:s3cret@127.0.0.1"),
        ("KADCRAWL_PROXIES", "socks5://user:s3cret@127.0.0.1:1"),
        ("KADCRAWL_KEY", "s3cret"),
    ):
        said = run("crawl", "http://127.0.0.1:9/", "--data", str(tmp_path / "data"), **{variable: value})
        assert "s3cret" not in said, said


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("MAXPAGES", "MAX_PAGES"),
        ("MAX_PAGE", "MAX_PAGES"),
        ("DEPTH", "MAX_DEPTH"),
        ("LOG_LEVEL", "LOG"),
        ("NO_SITEMAPS", "SITEMAPS"),
    ],
)
def test_a_mistyped_variable_is_named_once_with_the_one_that_was_meant(variable: str, meant: str) -> None:
    result = CliRunner(env={PREFIX + variable: "1"}).invoke(group_for(["completion"]), ["completion", "bash"])
    assert (0, f"kadcrawl: the variable {PREFIX}{variable} has no effect: {PREFIX}{meant} may be meant\n") == (
        result.exit_code,
        result.stderr,
    )


@pytest.mark.parametrize(
    "variable",
    [
        "MAX_PAGES",  # Of another command.
        "SERVICE_HOST",
        "SERVICE_PORT_LINK",
        "PORT",
        "PORT_4160_TCP_ADDR",
        "IMAGE",
    ],
)
def test_a_variable_that_is_known_or_resembles_none_is_not_named(variable: str) -> None:
    assert (
        "" == CliRunner(env={PREFIX + variable: "1"}).invoke(group_for(["completion"]), ["completion", "bash"]).stderr
    )


def test_an_empty_mistyped_variable_counts_as_none() -> None:
    assert [] == unread({f"{PREFIX}MAXPAGES": ""}, main)
