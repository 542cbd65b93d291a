"""Test which requests the dashboard answers, as their headers tell where they come from."""

from http import HTTPStatus

import pytest

from kadcrawl.web.request_guard import AskedBy, RequestGuard

HERE = "127.0.0.1:14190"


def status(method: str, asked_by: AskedBy, *, has_data: bool = True, names: tuple[str, ...] = ()) -> HTTPStatus | None:
    refused = RequestGuard(names).why_refused(method, asked_by, has_data=has_data)
    return None if refused is None else refused.status


@pytest.mark.parametrize("host", [HERE, "localhost:9000", "[::1]:14190", "10.0.0.1:14190", "LOCALHOST."])
def test_a_request_to_an_address_of_this_machine_is_answered(host: str) -> None:
    assert status("GET", AskedBy(host)) is None


@pytest.mark.parametrize("host", [None, "", "evil.example", "127.0.0.1.evil.example", "[evil]"])
def test_a_request_to_another_name_is_refused(host: str | None) -> None:
    assert HTTPStatus.FORBIDDEN == status("GET", AskedBy(host), has_data=False)


def test_a_name_of_the_machine_is_good_where_others_reach_it() -> None:
    assert status("GET", AskedBy("Crawler-7:14190"), names=("crawler-7",)) is None
    assert HTTPStatus.FORBIDDEN == status("GET", AskedBy("crawler-8:14190"), names=("crawler-7",))


@pytest.mark.parametrize("origin", [None, "null", "", "https://127.0.0.1:14190", "http://127.0.0.1:1", "http://evil"])
def test_an_order_from_another_origin_is_refused(origin: str | None) -> None:
    assert HTTPStatus.FORBIDDEN == status("POST", AskedBy(HERE, origin))


def test_an_order_from_a_page_of_the_dashboard_is_taken() -> None:
    assert status("POST", AskedBy(HERE, f"http://{HERE}", "same-origin")) is None


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_site_gets_no_data(site: str) -> None:
    assert HTTPStatus.FORBIDDEN == status("GET", AskedBy(HERE, None, site))
    assert status("GET", AskedBy(HERE, None, site), has_data=False) is None, "a link to the pages is no harm"


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "CONNECT", "get"])
def test_other_methods_are_refused(method: str) -> None:
    assert HTTPStatus.METHOD_NOT_ALLOWED == status(method, AskedBy(HERE, f"http://{HERE}"))
