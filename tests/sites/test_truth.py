"""Test that the independent crawl reads links as browsers do. Every test on real sites would repeat its errors."""

import pytest

from scripts import truth


@pytest.mark.parametrize(
    ("link", "url"),
    [
        ("page.html", "http://site/a/page.html"),
        (" \n page.html\t", "http://site/a/page.html"),
        ("", "http://site/a/b"),
        ("#top", "http://site/a/b"),
        ("?q=1", "http://site/a/b?q=1"),
        ("/", "http://site/"),
        ("../../x/./y/../z", "http://site/x/z"),
        ("HTTP://SITE:80", "http://site/"),
        ("http://site/x/../y", "http://site/y"),
        ("//other/x", "http://other/x"),
        ("\\x\\y?q=\\", "http://site/x/y?q=\\"),
        ("é.html?q=é", "http://site/a/%C3%A9.html?q=%C3%A9"),
        ("%c3%a9.html", "http://site/a/%C3%A9.html"),
        ("two words.html", "http://site/a/two%20words.html"),
        ("~user/(x),y;z=1!", "http://site/a/~user/(x),y;z=1!"),
    ],
)
def test_one_form_stands_for_all_spellings(link: str, url: str) -> None:
    assert truth.canonical(link, "http://site/a/b") == url
    assert truth.canonical(url, "") == url
