//! The meaning of a tag, as far as it needs no parser: `_PLAIN` and `_may_say` of html_links.py.

use crate::walk::{find, skip, PLAIN, WHITE};

#[derive(Debug, PartialEq)]
pub enum Plain<'a> {
    /// The tag needs a parser, if it says anything.
    No,
    ThisPage,
    /// The href, short of its fragment.
    Href(&'a [u8]),
}

/// Returns the href of a tag that `_PLAIN` matches.
pub fn plain(tag: &[u8]) -> Plain<'_> {
    read_plain(tag).map_or(Plain::No, |href| if href.is_empty() { Plain::ThisPage } else { Plain::Href(href) })
}

fn read_plain(tag: &[u8]) -> Option<&[u8]> {
    if tag.first() != Some(&b'a') {
        return None;
    }
    let before = others_end(tag, 1);
    let key = skip(tag, before, WHITE);
    if key == before || !tag[key..].starts_with(b"href=") {
        return None;
    }
    let quote = *tag.get(key + 5).filter(|byte| matches!(byte, b'"' | b'\''))?;
    let start = key + 6;
    let rest = &tag[start..];
    let scheme = [b"http://".as_slice(), b"https://"].into_iter().find(|scheme| rest.starts_with(scheme));
    let path = start + scheme.map_or(0, <[u8]>::len);
    let is_query = tag.get(path) == Some(&b'?');
    let end = if is_query { path } else { skip(tag, path, PLAIN) };
    if end == path && scheme.is_some() {
        return None;
    }
    let mut close = end;
    if tag.get(close) == Some(&b'#') {
        close += tag[close..].iter().position(|byte| matches!(byte, b'"' | b'\''))?;
    }
    if tag.get(close) != Some(&quote) {
        return None;
    }
    let last = skip(tag, others_end(tag, close + 1), WHITE);
    (last + 1 == tag.len() && tag[last] == b'>').then(|| &tag[start..end])
}

/// Returns the place after the attributes that say nothing about the link, as `_OTHERS` matches them.
fn others_end(tag: &[u8], mut at: usize) -> usize {
    while let Some(end) = other_end(tag, at) {
        at = end;
    }
    at
}

fn other_end(tag: &[u8], at: usize) -> Option<usize> {
    let key = skip(tag, at, WHITE);
    let rest = &tag[key..];
    if key == at || rest.starts_with(b"href") || rest.starts_with(b"rel") {
        return None;
    }
    let letters = rest.iter().position(|byte| !matches!(byte, b'a'..=b'z' | b'-'))?;
    if letters == 0 || !rest[letters..].starts_with(b"=\"") {
        return None;
    }
    find(tag, key + letters + 2, b'"').map(|end| end + 1)
}

/// Tells whether a tag has to be parsed, as `_may_say` does: whether it has words that count. `agent` is in lower case.
pub fn may_say(tag: &[u8], agent: &[u8]) -> bool {
    let has_any = |words: &[&[u8]]| (0..tag.len()).any(|at| words.iter().any(|word| begins(&tag[at..], word)));
    match tag.first() {
        Some(b'm' | b'M') if !has_any(&[b"robots", b"refresh", b"&", b"\xe2\x84\xaa", agent]) => false,
        Some(b'l' | b'L') if !has_any(&[b"next", b"canonical", b"alternate", b"&"]) => false,
        _ => has_any(&[b"href", b"src", b"content"]),
    }
}

fn begins(text: &[u8], word: &[u8]) -> bool {
    text.get(..word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word))
}

/// Tells whether a tag may be a base element, which gives the links of a page another meaning.
pub fn may_be_base(tag: &[u8]) -> bool {
    tag.get(..4).is_some_and(|name| name.eq_ignore_ascii_case(b"base"))
}
