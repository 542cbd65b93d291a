//! The binding to CPython's stable ABI of 3.11, as the header files declare it. Without a GIL this ABI does not load.

use std::ffi::{c_char, c_int, c_long, CStr};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr;

use crate::join::Base;
use crate::tag::{may_be_base, may_say, orderly, plain, Kind, Plain};
use crate::walk::Walk;

/// A longer tag is never remembered, as `_SHORT_BYTES` in html_links.py has it.
const SHORT_BYTES: usize = 256;

#[repr(C)]
struct Object {
    count: isize,
    kind: *mut Object,
}

#[repr(C)]
struct Method {
    name: *const c_char,
    function: Option<Function>,
    flags: c_int,
    doc: *const c_char,
}

#[repr(C)]
struct ModuleDefinition {
    object: Object,
    init: *const u8,
    index: isize,
    copy: *mut Object,
    name: *const c_char,
    doc: *const c_char,
    size: isize,
    methods: *mut Method,
    slots: *const u8,
    traverse: *const u8,
    clear: *const u8,
    free: *const u8,
}

type Function = unsafe extern "C" fn(*mut Object, *const *mut Object, isize) -> *mut Object;
const METH_FASTCALL: c_int = 0x80;
const ABI_VERSION: c_int = 3;

#[allow(non_upper_case_globals)]
extern "C" {
    static mut _Py_NoneStruct: Object;
    static mut PyUnicode_Type: Object;
    static PyExc_RuntimeError: *mut Object;
    static PyExc_TypeError: *mut Object;
    fn Py_IncRef(object: *mut Object);
    fn Py_DecRef(object: *mut Object);
    fn PyErr_Occurred() -> *mut Object;
    fn PyErr_SetString(kind: *mut Object, message: *const c_char);
    fn PyLong_FromSsize_t(value: isize) -> *mut Object;
    fn PyLong_AsSsize_t(object: *mut Object) -> isize;
    fn PyBytes_AsStringAndSize(object: *mut Object, bytes: *mut *mut c_char, size: *mut isize) -> c_int;
    fn PyBytes_FromStringAndSize(bytes: *const c_char, size: isize) -> *mut Object;
    fn PyUnicode_AsUTF8AndSize(object: *mut Object, size: *mut isize) -> *const c_char;
    fn PyUnicode_FromStringAndSize(bytes: *const c_char, size: isize) -> *mut Object;
    fn PyDict_New() -> *mut Object;
    fn PyDict_GetItemWithError(dict: *mut Object, key: *mut Object) -> *mut Object;
    fn PyDict_SetItem(dict: *mut Object, key: *mut Object, value: *mut Object) -> c_int;
    fn PyList_Size(list: *mut Object) -> isize;
    fn PyList_GetItem(list: *mut Object, at: isize) -> *mut Object;
    fn PyList_New(size: isize) -> *mut Object;
    fn PyList_Append(list: *mut Object, item: *mut Object) -> c_int;
    fn PyTuple_Pack(size: isize, ...) -> *mut Object;
    fn PyBool_FromLong(value: c_long) -> *mut Object;
    fn PyObject_CallObject(called: *mut Object, arguments: *mut Object) -> *mut Object;
    fn PyModule_Create2(definition: *mut ModuleDefinition, version: c_int) -> *mut Object;
    fn PyModule_AddStringConstant(module: *mut Object, name: *const c_char, value: *const c_char) -> c_int;
}

/// An exception of Python is set.
struct Raised;

/// A reference that is given back when it is dropped.
struct Owned(*mut Object);

impl Owned {
    fn new(object: *mut Object) -> Result<Self, Raised> {
        if object.is_null() { Err(Raised) } else { Ok(Owned(object)) }
    }

    fn bytes(text: &[u8]) -> Result<Self, Raised> {
        Self::new(unsafe { PyBytes_FromStringAndSize(text.as_ptr().cast(), text.len() as isize) })
    }

    fn text(text: &[u8]) -> Result<Self, Raised> {
        Self::new(unsafe { PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as isize) })
    }

    fn number(number: usize) -> Result<Self, Raised> {
        Self::new(unsafe { PyLong_FromSsize_t(number as isize) })
    }

    fn none() -> Self {
        let none = &raw mut _Py_NoneStruct;
        unsafe { Py_IncRef(none) };
        Owned(none)
    }

    fn truth(value: bool) -> Result<Self, Raised> {
        Self::new(unsafe { PyBool_FromLong(value.into()) })
    }

    fn list() -> Result<Self, Raised> {
        Self::new(unsafe { PyList_New(0) })
    }

    fn append(&self, item: *mut Object) -> Result<(), Raised> {
        done(unsafe { PyList_Append(self.0, item) })
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        unsafe { Py_DecRef(self.0) };
    }
}

fn done(status: c_int) -> Result<(), Raised> {
    if status < 0 { Err(Raised) } else { Ok(()) }
}

/// Returns the bytes of a bytes object, which live as long as the caller holds the object.
fn bytes_of<'a>(object: *mut Object) -> Result<&'a [u8], Raised> {
    let (mut start, mut size) = (ptr::null_mut(), 0);
    done(unsafe { PyBytes_AsStringAndSize(object, &mut start, &mut size) })?;
    Ok(unsafe { std::slice::from_raw_parts(start.cast(), size as usize) })
}

fn text_of<'a>(object: *mut Object) -> Result<&'a [u8], Raised> {
    let mut size = 0;
    let start = unsafe { PyUnicode_AsUTF8AndSize(object, &mut size) };
    if start.is_null() { Err(Raised) } else { Ok(unsafe { std::slice::from_raw_parts(start.cast(), size as usize) }) }
}

/// Returns a borrowed value of a dict, or null.
fn value_in(dict: *mut Object, key: &Owned) -> Result<*mut Object, Raised> {
    let value = unsafe { PyDict_GetItemWithError(dict, key.0) };
    if value.is_null() && !unsafe { PyErr_Occurred() }.is_null() { Err(Raised) } else { Ok(value) }
}

/// Reads a number that is not negative.
fn number_of(object: *mut Object) -> Result<usize, Raised> {
    let number = unsafe { PyLong_AsSsize_t(object) };
    if number == -1 && !unsafe { PyErr_Occurred() }.is_null() {
        return Err(Raised);
    }
    Ok(number.max(0) as usize)
}

/// `tags(markup, start, tags_max)` returns the link tags of a page from this place on, at most so many, and the place
/// up to which the page was read.
fn tags(arguments: [*mut Object; 3]) -> Result<Owned, Raised> {
    let [markup, start, tags_max] = arguments;
    let (page, start, tags_max) = (bytes_of(markup)?, number_of(start)?, number_of(tags_max)?);
    let found = Owned::list()?;
    let mut walk = Walk::from(page, start);
    for tag in walk.by_ref().take(tags_max) {
        found.append(Owned::bytes(tag)?.0)?;
    }
    let end = Owned::number(walk.at())?;
    Owned::new(unsafe { PyTuple_Pack(2, found.0, end.0) })
}

/// `join(base, href)` returns a canonical URL, or None if the URL parser has to make it.
fn join(arguments: [*mut Object; 2]) -> Result<Owned, Raised> {
    let mut url = Vec::new();
    match Base::of(text_of(arguments[0])?) {
        Some(base) if base.join(bytes_of(arguments[1])?, &mut url) => Owned::text(&url),
        _ => Ok(Owned::none()),
    }
}

/// `plain(tags, base, agent)` returns two things: the URLs of the tags among these that need no parser, and the others
/// that may say something.
fn plain_tags(arguments: [*mut Object; 3]) -> Result<Owned, Raised> {
    let [tags, base, agent] = arguments;
    let (base, agent) = (Base::of(text_of(base)?), text_of(agent)?);
    let (fresh, others) = (Owned::new(unsafe { PyDict_New() })?, Owned::list()?);
    let (mut url, mut decoded) = (Vec::new(), Vec::new());
    let count = unsafe { PyList_Size(tags) };
    if count < 0 {
        return Err(Raised);
    }
    for at in 0..count {
        let key = unsafe { PyList_GetItem(tags, at) }; // Borrowed from the list, which nobody changes meanwhile.
        if key.is_null() {
            return Err(Raised);
        }
        let tag = bytes_of(key)?;
        match (&base, plain(tag)) {
            (Some(base), Plain::Href(href)) if tag.len() <= SHORT_BYTES && base.join(href, &mut url) => {
                done(unsafe { PyDict_SetItem(fresh.0, key, Owned::text(&url)?.0) })?;
            }
            (Some(base), Plain::No)
                if tag.len() <= SHORT_BYTES
                    && orderly(tag, &mut decoded) == Some(Kind::Link)
                    && base.join(&decoded, &mut url) =>
            {
                done(unsafe { PyDict_SetItem(fresh.0, key, Owned::text(&url)?.0) })?;
            }
            _ if may_say(tag, agent) => others.append(key)?,
            _ => {}
        }
    }
    Owned::new(unsafe { PyTuple_Pack(2, fresh.0, others.0) })
}

/// Returns the meaning of an orderly tag whose URL this is: the URL, or an object of the class of `nothing`.
fn meaning_of(kind: Kind, url: &[u8], nothing: *mut Object) -> Result<Owned, Raised> {
    let url = Owned::text(url)?;
    if kind == Kind::Link {
        return Ok(url);
    }
    let (follows, is_canonical) = (Owned::truth(kind != Kind::Unfollowed)?, Owned::truth(kind == Kind::Canonical)?);
    let arguments = Owned::new(unsafe { PyTuple_Pack(3, url.0, follows.0, is_canonical.0) })?;
    Owned::new(unsafe { PyObject_CallObject((*nothing).kind, arguments.0) })
}

/// `meanings(markup, known, nothing, base, tags_max, agent)` returns None if Python has to read this page, or four things:
/// the meanings of its tags that say something, or the tag in the place of an unknown meaning; these tags; the tags
/// whose meanings were found here and are not among the known ones; the places of the meanings that are no URLs.
fn meanings(arguments: [*mut Object; 6]) -> Result<Owned, Raised> {
    let [markup, known, nothing, base, tags_max, agent] = arguments;
    let agent = text_of(agent)?;
    let tags_max = number_of(tags_max)?;
    let Some(base) = Base::of(text_of(base)?) else { return Ok(Owned::none()) };
    let (found, unknown, fresh) = (Owned::list()?, Owned::list()?, Owned::new(unsafe { PyDict_New() })?);
    let (odd, mut count) = (Owned::list()?, 0);
    let (mut url, mut decoded) = (Vec::new(), Vec::new());
    for (number, tag) in Walk::from(bytes_of(markup)?, 0).enumerate() {
        if number >= tags_max || may_be_base(tag) {
            return Ok(Owned::none());
        }
        let key = Owned::bytes(tag)?;
        if tag.len() <= SHORT_BYTES {
            let mut meaning = value_in(known, &key)?;
            if meaning.is_null() {
                meaning = value_in(fresh.0, &key)?;
            }
            if !meaning.is_null() {
                if meaning != nothing {
                    if unsafe { (*meaning).kind } != &raw mut PyUnicode_Type {
                        odd.append(Owned::number(count)?.0)?;
                    }
                    found.append(meaning)?;
                    count += 1;
                }
                continue;
            }
            match plain(tag) {
                Plain::ThisPage => continue,
                Plain::Href(href) if base.join(href, &mut url) => {
                    let url = Owned::text(&url)?;
                    done(unsafe { PyDict_SetItem(fresh.0, key.0, url.0) })?;
                    found.append(url.0)?;
                    count += 1;
                    continue;
                }
                Plain::Href(_) => {}
                Plain::No => match orderly(tag, &mut decoded) {
                    Some(Kind::Nothing) => continue,
                    Some(kind) if base.join(&decoded, &mut url) => {
                        let meaning = meaning_of(kind, &url, nothing)?;
                        done(unsafe { PyDict_SetItem(fresh.0, key.0, meaning.0) })?;
                        if kind != Kind::Link {
                            odd.append(Owned::number(count)?.0)?;
                        }
                        found.append(meaning.0)?;
                        count += 1;
                        continue;
                    }
                    _ => {}
                },
            }
        }
        if may_say(tag, agent) {
            odd.append(Owned::number(count)?.0)?;
            found.append(key.0)?;
            unknown.append(key.0)?;
            count += 1;
        }
    }
    Owned::new(unsafe { PyTuple_Pack(4, found.0, unknown.0, fresh.0, odd.0) })
}

/// Calls a function with the arguments that Python passed. A panic becomes an exception.
unsafe fn called<const N: usize>(
    function: fn([*mut Object; N]) -> Result<Owned, Raised>,
    arguments: *const *mut Object,
    count: isize,
) -> *mut Object {
    if count != N as isize {
        PyErr_SetString(PyExc_TypeError, c"wrong number of arguments".as_ptr());
        return ptr::null_mut();
    }
    let arguments = *arguments.cast::<[*mut Object; N]>();
    match catch_unwind(AssertUnwindSafe(|| function(arguments))) {
        Ok(Ok(result)) => {
            let object = result.0;
            std::mem::forget(result); // Python owns it from here on.
            object
        }
        Ok(Err(Raised)) => ptr::null_mut(),
        Err(_) => {
            PyErr_SetString(PyExc_RuntimeError, c"the native link extractor panicked".as_ptr());
            ptr::null_mut()
        }
    }
}

unsafe extern "C" fn call_tags(_: *mut Object, arguments: *const *mut Object, count: isize) -> *mut Object {
    called(tags, arguments, count)
}

unsafe extern "C" fn call_join(_: *mut Object, arguments: *const *mut Object, count: isize) -> *mut Object {
    called(join, arguments, count)
}

unsafe extern "C" fn call_meanings(_: *mut Object, arguments: *const *mut Object, count: isize) -> *mut Object {
    called(meanings, arguments, count)
}

unsafe extern "C" fn call_plain(_: *mut Object, arguments: *const *mut Object, count: isize) -> *mut Object {
    called(plain_tags, arguments, count)
}

const fn method(name: &'static CStr, function: Function) -> Method {
    Method { name: name.as_ptr(), function: Some(function), flags: METH_FASTCALL, doc: ptr::null() }
}

static mut METHODS: [Method; 5] = [
    method(c"tags", call_tags),
    method(c"join", call_join),
    method(c"plain", call_plain),
    method(c"meanings", call_meanings),
    Method { name: ptr::null(), function: None, flags: 0, doc: ptr::null() },
];

static mut MODULE: ModuleDefinition = ModuleDefinition {
    object: Object { count: 1, kind: ptr::null_mut() },
    init: ptr::null(),
    index: 0,
    copy: ptr::null_mut(),
    name: c"_native".as_ptr(),
    doc: c"The native part of the link extractor.".as_ptr(),
    size: -1,
    methods: (&raw mut METHODS).cast(),
    slots: ptr::null(),
    traverse: ptr::null(),
    clear: ptr::null(),
    free: ptr::null(),
};

/// Makes the module. CPython looks for this name.
#[no_mangle]
unsafe extern "C" fn PyInit__native() -> *mut Object {
    let module = PyModule_Create2(&raw mut MODULE, ABI_VERSION);
    let digest = concat!(env!("NATIVE_SOURCES_DIGEST"), "\0");
    if !module.is_null() && PyModule_AddStringConstant(module, c"SOURCES".as_ptr(), digest.as_ptr().cast()) < 0 {
        Py_DecRef(module);
        return ptr::null_mut();
    }
    module
}
