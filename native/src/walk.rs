//! The walk over a page finds the link tags that the expression `LINK_TAG` of html_walk.py finds, in the same order.

use std::io::BufRead;

pub const WHITE: u8 = 1;
const SLASH: u8 = 2;
/// White space, `/` and `>` end a name.
const NAME_END: u8 = 4;
const KEY_END: u8 = 8;
/// White space and `>` end a value without quotes.
const VALUE_END: u8 = 16;
/// Bytes that stand for themselves in an href, as `_PLAIN_VALUE` has them.
pub const PLAIN: u8 = 32;
const ALPHA: u8 = 64;

const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'\t' | b'\n' | 12 | b'\r' | b' ' => WHITE | NAME_END | KEY_END | VALUE_END,
            b'/' => SLASH | NAME_END | KEY_END | PLAIN,
            b'>' => NAME_END | KEY_END | VALUE_END,
            b'=' => KEY_END | PLAIN,
            b'a'..=b'z' | b'A'..=b'Z' => ALPHA | PLAIN,
            b'"' | b'\'' | b'&' | b':' | b'#' => 0,
            0..=0x20 | 0x7f..=0xff => 0,
            _ => PLAIN,
        };
        byte += 1;
    }
    classes
};
const LINKS: [&[u8]; 7] = [b"a", b"area", b"base", b"frame", b"iframe", b"link", b"meta"];
const RAW: [&[u8]; 5] = [b"script", b"style", b"textarea", b"title", b"xmp"];
/// An end tag up to this length, without values and other tags in it, holds no surprise.
const END_TAG_MAX: usize = 65;

pub fn is(byte: u8, classes: u8) -> bool {
    CLASSES[byte as usize] & classes != 0
}

/// Returns the first place from `at` on whose byte is in none of the classes.
pub fn skip(text: &[u8], at: usize, classes: u8) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    rest.iter().position(|&byte| !is(byte, classes)).map_or(text.len(), |more| at + more)
}

/// Returns the first place from `at` on whose byte is in one of the classes.
fn until(text: &[u8], at: usize, classes: u8) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    rest.iter().position(|&byte| is(byte, classes)).map_or(text.len(), |more| at + more)
}

/// Returns the place of a byte from `at` on, found by the system's memchr.
pub fn find(text: &[u8], at: usize, byte: u8) -> Option<usize> {
    let mut rest = text.get(at..)?;
    let passed = rest.skip_until(byte).ok()?;
    let last = (at + passed).checked_sub(1)?;
    (passed > 0 && text[last] == byte).then_some(last)
}

/// The link tags of a page, from the name to the `>`.
pub struct Walk<'a> {
    page: &'a [u8],
    at: usize,
}

impl<'a> Walk<'a> {
    pub fn from(page: &'a [u8], at: usize) -> Self {
        Walk { page, at }
    }

    /// Returns the place up to which the page is walked.
    pub fn at(&self) -> usize {
        self.at
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let page = self.page;
        loop {
            let Some(open) = find(page, self.at, b'<') else {
                self.at = page.len();
                return None;
            };
            let start = open + 1;
            let Some(&byte) = page.get(start) else {
                self.at = page.len();
                return None;
            };
            self.at = match byte {
                b'/' => end_tag_end(page, start),
                b'!' if page[start..].starts_with(b"!--") => comment_end(page, start + 3),
                b'!' | b'?' => find(page, start + 1, b'>').unwrap_or(page.len()),
                _ if is(byte, ALPHA) => {
                    let name_end = until(page, start, NAME_END);
                    let end = attributes_end(page, name_end) + 1;
                    if end > page.len() {
                        self.at = page.len();
                        return None; // The end of the page cuts the tag off.
                    }
                    let name = &page[start..name_end];
                    if is_in(&LINKS, name) {
                        self.at = end;
                        return Some(&page[start..end]);
                    }
                    if is_in(&RAW, name) { raw_text_end(page, end, name) } else { end }
                }
                _ => start,
            };
        }
    }
}

fn is_in(names: &[&[u8]], name: &[u8]) -> bool {
    names.iter().any(|one| one.eq_ignore_ascii_case(name))
}

/// Returns the place of the `>` that ends a tag, from the end of its name, or the end of the page.
fn attributes_end(page: &[u8], mut at: usize) -> usize {
    loop {
        at = skip(page, at, WHITE | SLASH);
        match page.get(at) {
            None | Some(b'>') => return at,
            Some(b'=') => at += 1, // The first letter of a name.
            _ => {}
        }
        at = until(page, at, KEY_END);
        let sign = skip(page, at, WHITE);
        if page.get(sign) == Some(&b'=') {
            at = value_end(page, skip(page, sign + 1, WHITE));
        }
    }
}

fn value_end(page: &[u8], at: usize) -> usize {
    match page.get(at) {
        Some(&quote @ (b'"' | b'\'')) => find(page, at + 1, quote).map_or(page.len(), |end| end + 1),
        _ => until(page, at, VALUE_END),
    }
}

/// Returns the place after the name of the end tag that ends a raw text.
fn raw_text_end(page: &[u8], mut at: usize, name: &[u8]) -> usize {
    while let Some(open) = find(page, at, b'<') {
        let end = open + 2 + name.len();
        if page.get(open + 1) == Some(&b'/')
            && page.get(open + 2..end).is_some_and(|found| found.eq_ignore_ascii_case(name))
            && page.get(end).is_some_and(|&byte| is(byte, NAME_END))
        {
            return end;
        }
        at = open + 1;
    }
    page.len()
}

/// Returns the place from which the walk goes on after `</`, whose `/` is at `start`.
fn end_tag_end(page: &[u8], start: usize) -> usize {
    let at = start + 1;
    match page.get(at) {
        None | Some(b'>') => at,
        Some(&byte) if is(byte, ALPHA) => {
            let near = &page[at..page.len().min(at + END_TAG_MAX + 1)];
            match near.iter().position(|byte| matches!(byte, b'<' | b'>' | b'=')) {
                Some(more) if near[more] == b'>' => at + more,
                _ => attributes_end(page, until(page, at, NAME_END)),
            }
        }
        _ => find(page, at + 1, b'>').unwrap_or(page.len()),
    }
}

/// Returns the place after a comment, from the place after its `<!--`.
fn comment_end(page: &[u8], at: usize) -> usize {
    let rest = page.get(at..).unwrap_or_default();
    if rest.starts_with(b">") {
        return at + 1;
    }
    if rest.starts_with(b"->") {
        return at + 2;
    }
    let mut from = at;
    while let Some(dash) = find(page, from, b'-') {
        let rest = &page[dash + 1..];
        if rest.starts_with(b"->") {
            return dash + 3;
        }
        if rest.starts_with(b"-!>") {
            return dash + 4;
        }
        from = dash + 1;
    }
    page.len()
}
