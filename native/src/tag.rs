//! The meaning of a tag, as far as it needs no parser: `_PLAIN` and `_may_say` of html_links.py, and `_read` of a tag
//! that is orderly (tag_parser.py) but for references.

use crate::walk::{find, is, skip, PLAIN, WHITE};

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

/// The kind of an orderly tag that has an href.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    Link,
    /// A link that says nofollow.
    Unfollowed,
    /// The canonical URL of the page.
    Canonical,
    /// A link element about something else, such as a stylesheet, or an href that is no URL of the web, such as
    /// `mailto:`.
    Nothing,
}

/// Writes the href of an orderly a, area or link, without its fragment, and returns the kind of the tag. Returns None
/// if the tag needs a parser.
pub fn orderly(tag: &[u8], href: &mut Vec<u8>) -> Option<Kind> {
    let name_end = tag.iter().position(|byte| !byte.is_ascii_alphabetic())?;
    let name = &tag[..name_end];
    let is_link = name.eq_ignore_ascii_case(b"link");
    if !is_link && !name.eq_ignore_ascii_case(b"a") && !name.eq_ignore_ascii_case(b"area") {
        return None;
    }
    let (mut at, mut target, mut rel) = (name_end, None, None);
    loop {
        let key = skip(tag, at, WHITE);
        if matches!(&tag[key..], b">" | b"/>") {
            break;
        }
        let sign = key + tag[key..].iter().position(|&byte| !is_key(byte))?;
        if key == at || !tag[key].is_ascii_alphabetic() || tag[sign] != b'=' {
            return None;
        }
        let value;
        (value, at) = value_at(tag, sign + 1)?;
        let of_key = match &tag[key..sign] {
            name if name.eq_ignore_ascii_case(b"href") => &mut target,
            name if name.eq_ignore_ascii_case(b"rel") => &mut rel,
            _ => continue,
        };
        of_key.get_or_insert(value); // The first of several attributes of a name counts.
    }
    let rel = rel.unwrap_or_default();
    write_decoded(target?, href)?;
    if !rel.iter().all(|byte| matches!(byte, b'\t' | b'\n' | 12 | b' '..=b'~') && *byte != b'&') {
        return None;
    }
    let says = |word: &[u8]| rel.split(|&byte| is(byte, WHITE)).any(|one| one.eq_ignore_ascii_case(word));
    Some(match is_link {
        _ if has_other_scheme(href) => Kind::Nothing,
        false if says(b"nofollow") => Kind::Unfollowed,
        false => Kind::Link,
        true if says(b"stylesheet") => Kind::Nothing,
        true if says(b"canonical") => Kind::Canonical,
        true if says(b"next") || says(b"alternate") => Kind::Link,
        true => Kind::Nothing,
    })
}

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'.' | b'-')
}

/// Returns an attribute's value, quoted or not, and the place after it.
fn value_at(tag: &[u8], start: usize) -> Option<(&[u8], usize)> {
    match tag.get(start)? {
        &quote @ (b'"' | b'\'') => {
            let end = find(tag, start + 1, quote)?;
            let value = &tag[start + 1..end];
            (!value.iter().any(|byte| matches!(byte, 0 | b'\r'))).then_some((value, end + 1))
        }
        _ => {
            let end = start + tag[start..].iter().position(|&byte| byte == b'>' || is(byte, WHITE))?;
            let value = &tag[start..end];
            let is_plain = !value.iter().any(|byte| matches!(byte, b'"' | b'\'' | b'=' | b'<' | b'`' | b'&' | 0));
            (is_plain && end > start).then_some((value, end))
        }
    }
}

/// Writes an href without its fragment and without references. Returns None if it takes a parser to read them.
fn write_decoded(href: &[u8], out: &mut Vec<u8>) -> Option<()> {
    out.clear();
    let mut rest = href;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'&' | b'#')) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        if rest[0] == b'#' {
            let is_plain = !rest.iter().any(|byte| matches!(byte, b'\t' | b'\n' | 0x80..));
            return is_plain.then_some(());
        }
        let (byte, size) = reference(rest)?;
        out.push(byte);
        rest = &rest[size..];
    }
    out.extend_from_slice(rest);
    Some(())
}

/// Tells whether an href has a scheme that is not of the web.
fn has_other_scheme(href: &[u8]) -> bool {
    let end = href.iter().position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'.' | b'-')));
    let Some(end) = end.filter(|&end| href[end] == b':' && href[0].is_ascii_alphabetic()) else { return false };
    let scheme = &href[..end];
    !scheme.eq_ignore_ascii_case(b"http") && !scheme.eq_ignore_ascii_case(b"https")
}

/// Returns the byte that a reference means, and the length of the reference. An `&` before the name of a parameter
/// means itself, whatever the name (HTML 13.2.5.73).
fn reference(text: &[u8]) -> Option<(u8, usize)> {
    if text.starts_with(b"&amp;") {
        return Some((b'&', 5));
    }
    if let Some(number) = text.strip_prefix(b"&#") {
        let digits = number.iter().position(|byte| !byte.is_ascii_digit()).filter(|digits| (2..=3).contains(digits))?;
        let code = number[..digits].iter().fold(0, |code, digit| code * 10 + u32::from(digit - b'0'));
        let byte = u8::try_from(code).ok().filter(|&byte| byte == b'&' || is(byte, PLAIN))?;
        return (number[digits] == b';').then_some((byte, 2 + digits + 1));
    }
    let letters = text[1..].iter().position(|byte| !byte.is_ascii_alphanumeric())?;
    (text[1 + letters] == b'=').then_some((b'&', 1))
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
