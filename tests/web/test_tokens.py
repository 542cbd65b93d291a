"""Test one-time tokens: each is good once, for a while, and for one secret."""

from base64 import urlsafe_b64decode, urlsafe_b64encode

from kadcrawl.web.tokens import CLOCKS_APART_S, NONCE_BYTES, TOKEN_S, OneTimeTokens, make_token

SECRET, NOW = b"s" * 32, 1_700_000_000.0


def test_a_token_is_good_once() -> None:
    tokens = OneTimeTokens(SECRET)
    one, two = (make_token(SECRET, NOW, nonce * NONCE_BYTES) for nonce in (b"1", b"2"))
    assert [True, False, True, False] == [tokens.spend(token, NOW) for token in (one, one, two, one)]


def test_a_token_is_good_for_its_secret_alone() -> None:
    assert not OneTimeTokens(b"t" * 32).spend(make_token(SECRET, NOW, b"1" * NONCE_BYTES), NOW)


def test_a_token_ends() -> None:
    token = make_token(SECRET, NOW, b"1" * NONCE_BYTES)
    assert not OneTimeTokens(SECRET).spend(token, NOW + TOKEN_S)
    assert OneTimeTokens(SECRET).spend(token, NOW + TOKEN_S - 1)


def test_a_token_of_far_ahead_is_refused_so_that_spent_tokens_can_be_forgotten() -> None:
    token = make_token(SECRET, NOW + CLOCKS_APART_S + 2, b"1" * NONCE_BYTES)
    assert not OneTimeTokens(SECRET).spend(token, NOW)


def test_a_changed_token_is_refused() -> None:
    packed = urlsafe_b64decode(make_token(SECRET, NOW, b"1" * NONCE_BYTES))
    for at in range(len(packed)):
        changed = packed[:at] + bytes([packed[at] ^ 1]) + packed[at + 1 :]
        assert not OneTimeTokens(SECRET).spend(urlsafe_b64encode(changed).decode(), NOW)


def test_what_is_no_token_is_refused() -> None:
    for text in ("", "x", "é", "=" * 10, "A" * 300, "....", "A" * 76):
        assert not OneTimeTokens(SECRET).spend(text, NOW)
