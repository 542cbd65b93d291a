//! The native part of the link extractor: the walk over HTML, plain tags, their memo and the join of their URLs.
//!
//! The reference is kadcrawl/crawl/content/html_links.py. This code returns what that code returns, or leaves a tag or
//! a page to it. Only `python` touches CPython, through its stable ABI, and only `python` may hold unsafe code.

#![deny(unsafe_code)]

mod join;
#[allow(unsafe_code)]
mod python;
mod tag;
mod walk;
