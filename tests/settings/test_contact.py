"""A contact is a URL or an e-mail address, and an error says both."""

import pytest

from kadcrawl import ConfigError
from kadcrawl.settings.contact import checked_contact


@pytest.mark.parametrize(
    "contact",
    [
        "you@example.org",
        "first.last+crawl@mail.example.co.uk",
        "https://example.org/crawler",
        "HTTP://example.org",
        "https://xn--mnchen-3ya.example/bot?a=b",
        "https://[2001:db8::1]/",
        "",
    ],
)
def test_a_url_or_an_address_is_a_contact(contact: str) -> None:
    assert contact == checked_contact(f" {contact} ")


@pytest.mark.parametrize(
    "contact",
    [
        "me",
        "@example",
        "you@localhost",
        "you@example.org.",
        "you at example.org",
        "you@example.org, me@example.org",
        "example.org/crawler",
        "ftp://example.org/",
        "mailto:you@example.org",
        "https://",
        "https://user:secret@example.org/",
        "user:secret@example.org",
    ],
)
def test_anything_else_is_refused_with_both_forms(contact: str) -> None:
    with pytest.raises(ConfigError, match=r"https://example.org/crawler, or an e-mail address such as you@") as refused:
        checked_contact(contact)
    assert "secret" not in str(refused.value)
