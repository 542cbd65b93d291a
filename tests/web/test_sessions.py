"""Test sessions: who has one, how long, and which orders are of it."""

from kadcrawl.web.sessions import NONCE_BYTES, SESSION_S, Sessions

NOW, NONCE = 1_700_000_000.0, b"n" * NONCE_BYTES


def test_a_session_lasts_for_its_time() -> None:
    sessions = Sessions(lambda: b"k" * 32)
    cookie = sessions.begin(NOW, NONCE)
    assert [True, True, False] == [sessions.is_good(cookie, NOW + later) for later in (0, SESSION_S - 1, SESSION_S)]
    assert not sessions.is_good(cookie, NOW - 60)


def test_another_key_ends_all_sessions() -> None:
    keys = [b"k" * 32]
    sessions = Sessions(lambda: keys[-1])
    cookie = sessions.begin(NOW, NONCE)
    keys.append(b"l" * 32)
    assert not sessions.is_good(cookie, NOW)


def test_what_the_key_did_not_sign_is_no_session() -> None:
    sessions = Sessions(lambda: b"k" * 32)
    cookie = sessions.begin(NOW, NONCE)
    stated, _, mac = cookie.partition(".")
    for forged in (None, "", ".", stated, f"{stated}.", f"{'0' * 48}.{mac}", f"{stated}.{'0' * 64}", "é", "0" * 500):
        assert not sessions.is_good(forged, NOW)


def test_an_order_carries_the_header_of_its_own_session() -> None:
    sessions = Sessions(lambda: b"k" * 32)
    mine, other = sessions.begin(NOW, NONCE), sessions.begin(NOW, b"o" * NONCE_BYTES)
    assert sessions.is_header(mine, sessions.header(mine))
    for wrong in (None, "", sessions.header(other), mine, "é"):
        assert not sessions.is_header(mine, wrong)
