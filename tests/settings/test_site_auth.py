"""Test how requests prove who asks."""

import pytest

from kadcrawl.errors import ConfigError
from kadcrawl.settings.site_auth import auth_header, parse_auth
from kadcrawl.settings.site_rules import SiteRule, check_secrets, secrets_of


@pytest.mark.parametrize(
    ("auth", "secret", "header"),
    [
        ("basic:wiki", "Aladdin:open sesame", ("Authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")),
        ("basic:wiki", "me:p\u00e4ss", ("Authorization", "Basic bWU6cMOkc3M=")),
        ("bearer:wiki", "abc.def", ("Authorization", "Bearer abc.def")),
        ("X-Api-Key:wiki", "abc", ("X-Api-Key", "abc")),
    ],
)
def test_a_secret_becomes_a_header(auth: str, secret: str, header: tuple[str, str]) -> None:
    assert header == auth_header(parse_auth(auth), secret)
    check_secrets([SiteRule(match=("a.test",), auth=auth)], {"wiki": secret})


@pytest.mark.parametrize(
    ("auth", "why"),
    [
        ("basic", "must be basic:NAME, bearer:NAME or HEADER:NAME"),
        ("basic:me:hunter2", "the name of a secret has"),
        ("basic:", "the name of a secret has"),
        ("Host:wiki", "neither basic nor bearer, and no header for it"),
        ("Cookie:wiki", "neither basic nor bearer, and no header for it"),
        ("digest a:wiki", "neither basic nor bearer, and no header for it"),
        ("bearer:" + "x" * 200, "must be basic:NAME"),
    ],
)
def test_other_proofs_are_refused(auth: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        SiteRule(match=("a.test",), auth=auth)


@pytest.mark.parametrize(
    ("auth", "secret", "why"),
    [
        ("basic:wiki", "hunter2", "secret wiki must be user:password"),
        ("bearer:wiki", "hunter2\u00e4", "secret wiki must be ASCII"),
        ("bearer:other-name", "hunter2", r"secret other-name on each machine .* KADCRAWL_SECRET_OTHER_NAME"),
    ],
)
def test_a_secret_that_is_missing_or_does_not_fit_is_told_by_its_name(auth: str, secret: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as error:
        check_secrets([SiteRule(match=("a.test",), auth=auth)], {"wiki": secret})
    assert "hunter2" not in str(error.value)


def test_a_secret_goes_to_hosts_that_are_named() -> None:
    with pytest.raises(ConfigError, match="auth sends a secret: name each of the hosts in match, without a star"):
        SiteRule(match=("*.a.test",), auth="bearer:token")
    with pytest.raises(ConfigError, match="http_secrets would do nothing"):
        SiteRule(match=("a.test",), http_secrets=True)
    rules = [SiteRule(match=(f"{name}.test",), auth=f"bearer:{name}") for name in ("b", "a", "b")]
    assert ("a", "b") == secrets_of(rules)
