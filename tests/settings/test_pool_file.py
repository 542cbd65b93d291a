"""Test the named pools of proxies of a job file: their keys, their bounds, and that no error shows a proxy."""

from pathlib import Path

import pytest

from kadcrawl.errors import ConfigError
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_file import parse
from kadcrawl.settings.proxy_list import POOLS_MAX, PROXIES_MAX, ProxyPool
from kadcrawl.settings.site_rules import SiteRule
from kadcrawl.settings.site_settings import SiteSettings

FILE = Path("kadcrawl.toml")
JUDGE = "proxy-judge = 'https://judge.test/'\n"
PROXY = "http://me:pa55word@192.0.2.1:3128"
LIST = "https://lists.test/pa55word"
EU, US = ProxyPool(name="eu", proxies=(PROXY,)), ProxyPool(name="us", proxies_from=LIST)


def test_pools_are_files_or_lists_with_names(tmp_path: Path) -> None:
    (tmp_path / "eu.txt").write_text(f"{PROXY}  # one\n")
    text = f"{JUDGE}[[pools]]\nname = 'eu'\nproxies = '{tmp_path}/eu.txt'\n[[pools]]\nname = 'us'\nproxies = '{LIST}#x'"
    job = parse(text, FILE).job
    assert (EU, US) == job.pools
    assert (True, False) == (job.by_proxies, job.proxied_by_default)
    assert "pa55word" not in repr(job)
    assert () == parse("pools = 'none'", FILE).job.pools


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("name = 'eu'", "number 1: proxies must be a file"),
        ("proxies = 'x'", "number 1: name must be a name in quotes"),
        ("name = 'eu'\nproxies = 'socks5://me:pa55word@h'", "write a single proxy into a file"),
        ("name = 'eu'\nproxies = 'nowhere.txt'", "cannot read the proxies in nowhere.txt"),
        (f"name = 'none'\nproxies = '{LIST}'", "the name of a pool has"),
        (f"name = 'E U'\nproxies = '{LIST}'", "the name of a pool has"),
        (f"name = 'eu'\nlist = '{LIST}'", "there is no key 'list'; a pool has name and proxies"),
    ],
)
def test_a_mistake_in_a_pool_is_told_without_its_proxies(table: str, why: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse(f"{JUDGE}[[pools]]\n{table}", FILE)
    assert why in str(error.value)
    assert "pa55word" not in str(error.value)


@pytest.mark.parametrize(
    ("pools", "why"),
    [
        ((EU, EU), "there are two pools with the name eu"),
        (tuple(ProxyPool(name=f"p{n}", proxies_from=LIST) for n in range(POOLS_MAX + 1)), f"at most {POOLS_MAX} pools"),
        (
            (EU, ProxyPool(name="us", proxies=tuple(f"http://h{n}:1" for n in range(PROXIES_MAX)))),
            f"at most {PROXIES_MAX} proxies",
        ),
    ],
)
def test_the_pools_of_a_job_have_bounds(pools: tuple[ProxyPool, ...], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Job(pools=pools, proxy_judge="https://judge.test/")
    many = tuple(ProxyPool(name=f"p{n}", proxies_from=LIST) for n in range(POOLS_MAX))
    assert many == Job(pools=many, proxy_judge="https://judge.test/").pools


def test_pools_need_a_health_check_page() -> None:
    with pytest.raises(ConfigError, match="proxies need proxy_judge"):
        Job(pools=(EU,))


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"pools": (EU, US)}, "there is no pool 'asia'; the pools are eu, us, or say none"),
        ({}, r"there is no pool 'asia'; add a table \[\[pools\]\] with this name"),
    ],
)
def test_a_rule_with_an_unknown_pool_is_refused(fields: dict[str, tuple[ProxyPool, ...]], why: str) -> None:
    rule = SiteRule(match=("a.test",), proxies="asia")
    with pytest.raises(ConfigError, match=why):
        Job(sites=(rule,), **fields, proxy_judge="https://judge.test/" if fields else "")  # type: ignore[arg-type]


def test_a_client_certificate_does_not_go_through_a_pool() -> None:
    rule = SiteRule(match=("a.test",), proxies="eu", client_certificate="mine")
    with pytest.raises(ConfigError, match="cannot go through proxies"):
        Job(sites=(rule,), pools=(EU,), proxy_judge="https://judge.test/")
    direct = SiteRule(match=("a.test",), client_certificate="mine")
    assert (direct,) == Job(sites=(direct,), pools=(EU,), proxy_judge="https://judge.test/").sites


def test_a_url_goes_by_the_pool_of_its_rule_by_the_proxies_of_the_job_or_directly() -> None:
    rules = (SiteRule(match=("a.test",), proxies="eu"), SiteRule(match=("b.test",), proxies="none"))
    named = SiteSettings(Job(sites=rules, pools=(EU,), proxy_judge="https://judge.test/"))
    assert ["eu", None, None] == [named.pool(f"https://{host}.test/") for host in "abc"]
    both = SiteSettings(Job(sites=rules, pools=(EU,), proxies=(PROXY,), proxy_judge="https://judge.test/"))
    assert ["eu", None, ""] == [both.pool(f"https://{host}.test/") for host in "abc"]
