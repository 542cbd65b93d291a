//! The join of a page's URL and a plain href, where the canonical form of the result needs no URL parser.

/// A longer URL is left to the parser.
const URL_BYTES_MAX: usize = 2048;
const SCHEMES: [&[u8]; 2] = [b"http://", b"https://"];
/// Limits on the bytes of a host and of a label (RFC 1035, 2.3.4). A longer one is left to the parser.
const HOST_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

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
        let authority = SCHEMES.iter().find(|scheme| url.starts_with(scheme))?.len();
        let end = url.iter().position(|&byte| byte == b'?').unwrap_or(url.len());
        let path = url.get(authority..end)?;
        let root = authority + path.iter().position(|&byte| byte == b'/')?;
        let directory = authority + path.iter().rposition(|&byte| byte == b'/')? + 1;
        (root > authority).then_some(Base { url, root, directory })
    }

    /// Writes the canonical URL that `href` means on this page. Returns false if that takes the parser.
    pub fn join(&self, href: &[u8], out: &mut Vec<u8>) -> bool {
        let origin = &self.url[..self.root];
        let mut rest = match href.strip_prefix(origin).filter(|rest| rest.starts_with(b"/")) {
            Some(rest) => rest,
            None if SCHEMES.iter().any(|scheme| href.starts_with(scheme)) => return write_absolute(href, out),
            None => href,
        };
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

/// Writes the canonical URL of an absolute href. Returns false if that takes the parser.
fn write_absolute(href: &[u8], out: &mut Vec<u8>) -> bool {
    let Some(rest) = SCHEMES.iter().find_map(|scheme| href.strip_prefix(*scheme)) else { return false };
    let (host, path) = rest.split_at(rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len()));
    let is_plain = path.is_empty() || (!path.starts_with(b"/?") && is_simple(&path[1..]));
    if href.len() >= URL_BYTES_MAX || !is_plain || !is_plain_host(host) {
        return false;
    }
    out.clear();
    out.extend_from_slice(href);
    if path.is_empty() {
        out.push(b'/');
    }
    true
}

/// Tells whether a URL parser leaves this host as it is: it is no number, and has no escapes of other alphabets.
fn is_plain_host(host: &[u8]) -> bool {
    let is_plain = |label: &[u8]| {
        let hyphen = |at: usize| label.get(at) == Some(&b'-');
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
            && !(hyphen(0) || hyphen(label.len() - 1) || (hyphen(2) && hyphen(3)))
    };
    let last = host.rsplit(|&byte| byte == b'.').next().unwrap_or_default();
    host.len() <= HOST_BYTES_MAX
        && last.first().is_some_and(u8::is_ascii_lowercase)
        && host.split(|&byte| byte == b'.').all(is_plain)
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
        b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' | b'@' | b'&' => true,
        b'/' | b'?' => is_query,
        // An escaped dot is a dot to the parser.
        b'%' => upper_hex(at + 1) && upper_hex(at + 2) && !text[at + 1..].starts_with(b"2E"),
        _ => false,
    })
}
