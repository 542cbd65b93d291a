"""Test which proxies a web page names, in its text and in its tables."""

import pytest

from kadcrawl.crawl.proxies.page_proxies import is_page, page_proxies
from kadcrawl.settings.proxy_list import LIST_BYTES_MAX, Proxy

TABLE = """<!DOCTYPE html><html><body><h1>Free proxies</h1><table>
<thead><tr><th>IP address<th>Port<th>Country<th>Type<th>Https</thead>
<tr><td>203.0.113.1</td><td>3128</td><td>Peru</td><td>HTTP</td><td>no</td></tr>
<tr><td><div>203.0.113.2</div></td><td> <b>8080</b> </td><td>Chad</td><td>HTTPS</td><td>yes</td></tr>
<tr class=x><td>203.0.113.3<td>1080<td>Mali<td>SOCKS5<td>no
<tr><td>203.0.113.4<td>1080<td>Mali<td>SOCKS4/SOCKS5<td>no
<tr><td>203.0.113.5<td>1080<td>Mali<td>SOCKS4<td>no
<tr><td>203.0.113.6:1081<td>Mali<td>Socks5<td>no
<tr><td>203.0.113.7<td>unknown<td>Oman<td>HTTP
<tr><td>2001:db8::7</td><td>3128</td></tr>
<tr><td>8<td>seconds ago</table></body></html>"""


def named(page: str) -> list[str]:
    return [one.url for one in page_proxies(page) if isinstance(one, Proxy)]


def test_the_rows_of_a_table_name_proxies_by_cells() -> None:
    assert [
        "http://203.0.113.1:3128",
        "http://203.0.113.2:8080",
        "socks5://203.0.113.3:1080",
        "socks5://203.0.113.4:1080",
        "socks5://203.0.113.6:1081",
        "http://[2001:db8::7]:3128",
    ] == named(TABLE)
    errors = [one for one in page_proxies(TABLE) if not isinstance(one, Proxy)]
    assert ["a proxy is one of http://, https://, socks5://, not socks4://"] == list(map(str, errors))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<p>Use 203.0.113.7:3128.", ["http://203.0.113.7:3128"]),
        ("<li>203.0.113.7<b>:</b>3128</li>", ["http://203.0.113.7:3128"]),
        ("203.0.113.7&#58;3128", ["http://203.0.113.7:3128"]),
        ("<pre>203.0.113.7:80\n203.0.113.8:81</pre>", ["http://203.0.113.7:80", "http://203.0.113.8:81"]),
        ("(socks5://a:b%40c@203.0.113.7:1080)", ["socks5://a:b%40c@203.0.113.7:1080"]),
        ("https://203.0.113.7:443/", ["https://203.0.113.7:443"]),
        ("[2001:db8::1]:3128", ["http://[2001:db8::1]:3128"]),
        ("<p>203.0.113.7</p><p>3128</p>", []),
        ("socks4://203.0.113.7:1080", []),
        ("https://example.org:8080/ and example.org:3128", []),
        ("999.0.113.7:3128 203.0.113.7:0 203.0.113.7:65536 203.0.113.7:312800", []),
        ("1.203.0.113.7:3128 203.0.113.7:3128:5", []),
        ("<!-- 203.0.113.7:3128 --><script>'203.0.113.7:3128'</script><style>203.0.113.7:3128</style>", []),
        ("<p title='203.0.113.7:3128'>x", []),
        ("<!-- 203.0.113.7:3128", []),
        ("203.0.113.7:3128 <a href=", ["http://203.0.113.7:3128"]),
    ],
)
def test_text_names_proxies_by_address_and_port_only(body: str, expected: list[str]) -> None:
    assert expected == named(f"<html>{body}")


def test_a_page_is_known_by_its_type_or_its_first_tag() -> None:
    assert is_page("text/html", TABLE)
    assert is_page("", "\n<!doctype HTML><p>")
    assert not is_page("text/html", "http://203.0.113.7:3128\n"), "a list that a server gives the type of pages"
    assert not is_page("text/plain", "<p>no proxy\nhttp://203.0.113.7:3128")


@pytest.mark.parametrize(
    "piece", ["<", "<a", "<!--", "<script", "<td>", "<tr>", "&", "1.1.1.1:", "http://a:", "9", "[", " "]
)
def test_a_hostile_page_names_nothing_and_ends(piece: str) -> None:
    # Work that grows as the square of the size would run into the time limit of the test.
    assert [] == named("<html>" + piece * (LIST_BYTES_MAX // len(piece)))
