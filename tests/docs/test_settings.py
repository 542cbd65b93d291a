import dataclasses
import re
from collections import Counter
from pathlib import Path

import pytest

from kadcrawl.cli.app import main
from kadcrawl.settings.config import Config
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_file import KEYS, parse
from kadcrawl.settings.page_rules import RecordRule, RoleRule
from kadcrawl.settings.rule_file import RECORD_KEYS, ROLE_KEYS
from scripts.docs.docstrings import field_docstrings
from scripts.docs.settings import (
    CONFIG_OPTIONS,
    CONFIGURATION,
    EXAMPLES,
    JOB_FILE,
    NEEDS,
    RECORD_EXAMPLES,
    ROLE_EXAMPLES,
    SITE_EXAMPLES,
    generate,
    key_groups,
    unit_of,
)
from tests.support.cases import cases
from tests.support.sites.proxies import certificate

ROOT = Path(__file__).parents[2]
PAGES = generate(ROOT)


@cases(("kind", "field"), [(kind, field.name) for kind in (Config, Job) for field in dataclasses.fields(kind)])
def test_every_field_has_a_text(kind: type, field: str) -> None:
    assert field_docstrings(ROOT, kind)[field]
    assert f"### `{field}`" in PAGES[CONFIGURATION]


@pytest.fixture
def in_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a directory with the files that the examples name."""
    monkeypatch.chdir(tmp_path)
    certificate(tmp_path, "our-authority")


@pytest.mark.usefixtures("in_directory")
@cases("key", KEYS)
def test_the_example_of_a_key_is_a_good_job_file(key: str) -> None:
    text = "\n".join(EXAMPLES[name] for name in (*NEEDS.get(key, ()), key))
    file = parse(text, Path("kadcrawl.toml"))
    wanted = "proxies_from" if key == "proxies" else KEYS[key].field
    assert wanted in file.said


@pytest.mark.usefixtures("in_directory")
def test_an_example_of_a_key_says_something_else_than_the_default() -> None:
    same = []
    for key in KEYS.keys() - {"proxies"}:
        job = parse("\n".join(EXAMPLES[name] for name in (*NEEDS.get(key, ()), key)), Path("kadcrawl.toml")).job
        same += [key] * (getattr(job, KEYS[key].field) == getattr(Job(), KEYS[key].field))
    assert [] == same


def test_every_key_is_in_one_group() -> None:
    assert Counter(KEYS.keys()) == Counter(key for keys in key_groups().values() for key in keys)


def test_the_example_file_and_the_examples_of_rules_are_good() -> None:
    for block in re.findall(r"^```toml.*?\n(.*?)^```", PAGES[JOB_FILE], re.DOTALL | re.MULTILINE):
        parse(block, Path("kadcrawl.toml"))
    hook = f"[[records]]\npattern = {RECORD_EXAMPLES['pattern']}\nhook = {RECORD_EXAMPLES['hook']}"
    assert ("hooks:item",) == tuple(rule.hook for rule in parse(hook, Path("kadcrawl.toml")).job.records)
    off = parse(f"[[sites]]\nmatch = {SITE_EXAMPLES['match']}\noff = {SITE_EXAMPLES['off']}", Path("kadcrawl.toml"))
    assert (True,) == tuple(rule.off for rule in off.job.sites)
    role = "[[roles]]\n" + "\n".join(f"{key} = {value}" for key, value in ROLE_EXAMPLES.items())
    assert (True,) == tuple(rule.follow for rule in parse(role, Path("kadcrawl.toml")).job.roles)


@pytest.mark.parametrize(("kind", "keys"), [(RoleRule, ROLE_KEYS), (RecordRule, RECORD_KEYS)])
def test_every_key_of_a_rule_has_a_text_and_an_example(kind: type, keys: dict[str, type]) -> None:
    texts = field_docstrings(ROOT, kind)
    assert [] == [key for key in keys if not texts[key]]
    assert keys.keys() == (ROLE_EXAMPLES if kind is RoleRule else RECORD_EXAMPLES).keys()


def test_the_options_of_config_are_there() -> None:
    options = {name for command in main.commands.values() for parameter in command.params for name in parameter.opts}
    assert set() == set(CONFIG_OPTIONS.values()) - options
    assert set() == CONFIG_OPTIONS.keys() - {field.name for field in dataclasses.fields(Config)}


@pytest.mark.parametrize("page", PAGES)
def test_an_anchor_stands_once(page: str) -> None:
    anchors = re.findall(r'id="([^"]+)"|^#+ `?([\w]+)`?$', PAGES[page], re.MULTILINE)
    assert [] == [name for name, count in Counter(first or second for first, second in anchors).items() if count > 1]


@pytest.mark.parametrize(("field", "unit"), [("delay_s", "seconds"), ("max_pages", "URLs"), ("retries", "")])
def test_a_number_has_its_unit(field: str, unit: str) -> None:
    assert unit == unit_of(field)


def test_none_is_no_word_of_a_job_file() -> None:
    assert "None for" not in PAGES[JOB_FILE]
