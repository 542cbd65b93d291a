"""Test the secrets of a machine: their sources and bounds, and that no text shows a value."""

import pytest

from kadcrawl.errors import ConfigError
from kadcrawl.settings.config import Config
from kadcrawl.settings.secrets import (
    SECRET_CHARS_MAX,
    SECRETS_MAX,
    VARIABLE_PREFIX,
    Secrets,
    from_environment,
    from_toml,
)

VALUE = "hunter2-is-secret"


def test_a_file_has_a_secret_a_line() -> None:
    assert {"wiki-login": "me:pass word", "token": "a=b"} == from_toml(
        "# mine\nwiki-login = \"me:pass word\"\ntoken = 'a=b'\n", "FILE"
    )


@pytest.mark.parametrize(
    "text",
    [
        f"token = {VALUE}",
        f'token "{VALUE}"',
        f'token = ["{VALUE}"]',
        f'[token]\nx = "{VALUE}"',
        f'To_Ken = "{VALUE}"',
        "x = 5",
    ],
)
def test_a_file_that_is_none_is_refused_without_a_word_of_it(text: str) -> None:
    with pytest.raises(ConfigError) as error:
        from_toml(text, "FILE")
    assert VALUE not in str(error.value)


@pytest.mark.parametrize("value", ["", "x" * (SECRET_CHARS_MAX + 1), f"{VALUE}\r\nHost: a"])
def test_a_value_out_of_bounds_is_refused_without_a_word_of_it(value: str) -> None:
    with pytest.raises(ConfigError) as error:
        Secrets({"token": value})
    assert "token" in str(error.value)
    assert VALUE not in str(error.value)


def test_the_number_of_secrets_is_bounded() -> None:
    many = {f"n{number}": "x" for number in range(SECRETS_MAX)}
    assert SECRETS_MAX == len(Secrets(many))
    with pytest.raises(ConfigError, match=f"at most {SECRETS_MAX} secrets"):
        Secrets(many | {"more": "x"})


def test_the_environment_has_a_secret_a_variable() -> None:
    variables = {
        "KADCRAWL_SECRET_WIKI_LOGIN": "a:b",
        "KADCRAWL_SECRETS": "FILE",
        "HOME": "/",
        f"{VARIABLE_PREFIX}X": "",
    }
    assert {"wiki-login": "a:b"} == from_environment(variables)


def test_no_text_shows_a_secret(tmp_path: object) -> None:
    secrets = Secrets({"token": VALUE})
    assert VALUE == secrets["token"]
    config = Config(data=tmp_path, secrets=secrets)  # type: ignore[arg-type]
    assert VALUE not in f"{secrets!r} {secrets} {config!r}"
