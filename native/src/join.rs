//! The join of a page's URL and a plain href, where the canonical form of the result needs no URL parser.

/// A longer URL is left to the parser.
const URL_BYTES_MAX: usize = 2048;

/// The parts of a canonical URL that a relative reference replaces.
pub struct Base<'a> {
    url: &'a [u8],
    /// The place of the first slash of the path.
    root: usize,
    /// The place after the last slash of the path.
    directory: usize,
}

impl<'a> Base<'a> {
    /// Reads a canonical URL. Returns None if it has no path.
    pub fn of(url: &'a [u8]) -> Option<Self> {
        let authority = ["http://", "https://"].iter().find(|scheme| url.starts_with(scheme.as_bytes()))?.len();
        let end = url.iter().position(|&byte| byte == b'?').unwrap_or(url.len());
        let path = url.get(authority..end)?;
        let root = authority + path.iter().position(|&byte| byte == b'/')?;
        let directory = authority + path.iter().rposition(|&byte| byte == b'/')? + 1;
        (root > authority).then_some(Base { url, root, directory })
    }

    /// Writes the canonical URL that `href` means on this page. Returns false if that takes the parser.
    pub fn join(&self, href: &[u8], out: &mut Vec<u8>) -> bool {
        let origin = &self.url[..self.root];
        let mut rest = href.strip_prefix(origin).filter(|rest| rest.starts_with(b"/")).unwrap_or(href);
        let mut directory = self.directory;
        if let Some(path) = rest.strip_prefix(b"/") {
            (rest, directory) = (path, self.root + 1);
            if path.starts_with(b"?") {
                return false;
            }
        } else if rest.is_empty() || rest[0] == b'?' {
            return false;
        }
        loop {
            if let Some(path) = rest.strip_prefix(b"../") {
                rest = path;
                directory = self.parent(directory);
            } else if let Some(path) = rest.strip_prefix(b"./") {
                rest = path;
            } else {
                break;
            }
        }
        if directory + rest.len() > URL_BYTES_MAX || !is_simple(rest) {
            return false;
        }
        out.clear();
        out.extend_from_slice(&self.url[..directory]);
        out.extend_from_slice(rest);
        true
    }

    fn parent(&self, directory: usize) -> usize {
        let above = &self.url[self.root..directory - 1];
        above.iter().rposition(|&byte| byte == b'/').map_or(self.root + 1, |slash| self.root + slash + 1)
    }
}

/// Tells whether a URL parser leaves this path and query as they are.
fn is_simple(text: &[u8]) -> bool {
    let mark = text.iter().position(|&byte| byte == b'?');
    let path = &text[..mark.unwrap_or(text.len())];
    let mut segments = path.split(|&byte| byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        if matches!(segment, b"." | b"..") || (segment.is_empty() && !is_last) || !stays(segment, false) {
            return false;
        }
    }
    mark.is_none_or(|mark| mark + 1 < text.len() && stays(&text[mark + 1..], true))
}

/// Tells whether all bytes of a segment or query stay as they are.
fn stays(text: &[u8], is_query: bool) -> bool {
    let upper_hex = |at: usize| text.get(at).is_some_and(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'));
    text.iter().enumerate().all(|(at, byte)| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => true,
        b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' | b'@' => true,
        b'/' | b'?' => is_query,
        // An escaped dot is a dot to the parser.
        b'%' => upper_hex(at + 1) && upper_hex(at + 2) && !text[at + 1..].starts_with(b"2E"),
        _ => false,
    })
}
