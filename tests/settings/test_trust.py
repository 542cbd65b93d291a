"""Test the certificates of authorities that a job trusts."""

from pathlib import Path

import pytest

from kadcrawl.errors import ConfigError
from kadcrawl.settings.job import Job
from kadcrawl.settings.trust import PEM_CHARS_MAX, check_authorities, read_authorities, shown
from tests.support.sites.proxies import certificate


def test_a_file_gives_its_certificates_and_never_a_key(tmp_path: Path) -> None:
    path = certificate(tmp_path, "a.test")
    text = path.read_text()
    assert "PRIVATE KEY" in text
    path.write_text("a comment\r\n" + text.replace("\n", "\r\n") + text)
    pem = read_authorities(path)
    assert "PRIVATE" not in pem
    assert ("2 certificates", "") == (shown(pem), shown(""))
    assert pem == Job(ca_pem=pem).ca_pem


def test_a_file_without_certificates_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.pem"
    with pytest.raises(ConfigError, match="cannot read the certificates in"):
        read_authorities(path)
    path.write_bytes(b"\xff nothing")
    with pytest.raises(ConfigError, match="has no certificates of authorities"):
        read_authorities(path)


def test_certificates_of_another_peers_job_are_checked(tmp_path: Path) -> None:
    pem = read_authorities(certificate(tmp_path, "a.test"))
    for wrong, why in (
        (pem + "x", "must have certificates, and nothing else"),
        (pem.replace("M", "N"), "a certificate of ca-file is damaged"),
        (pem * (PEM_CHARS_MAX // len(pem) + 1), f"at most {PEM_CHARS_MAX} characters"),
    ):
        with pytest.raises(ConfigError, match=why):
            check_authorities(wrong)
