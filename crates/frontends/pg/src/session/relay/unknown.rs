//! Messages about a statement that the session has not prepared by the protocol: SQL may have
//! prepared it.
//!
//! A name in Windrow's format, which belongs to another session, never reaches the server: it is
//! replaced, and restored in the server's errors.

use super::ends::Ends;
use super::expect::{PreparedAs, What};
use super::renames::Renames;
use super::rewrite;
use crate::codec::message::Bind;
use crate::pool::Names;

/// Binds such a statement.
pub(super) fn bind(ends: &mut Ends<'_>, bind: &Bind<'_>, bytes: &[u8], muted: bool) {
    let Some(here) = Names::of_client(bind.statement) else {
        return ends.pass(bytes, What::Bind(None), muted);
    };
    let rest = rewrite::behind_names(bind, bytes);
    rewrite::bind(ends.out(), bind.portal, here.as_bytes(), rest);
    ends.queue.push(What::Bind(None), muted);
    note(ends, here, bind.statement);
}

/// Describes such a statement.
pub(super) fn describe(ends: &mut Ends<'_>, name: &[u8], bytes: &[u8], muted: bool) {
    let Some(here) = Names::of_client(name) else {
        return ends.pass(bytes, What::DescribeStatement, muted);
    };
    rewrite::statement(ends.out(), b'D', here.as_bytes());
    ends.queue.push(What::DescribeStatement, muted);
    note(ends, here, name);
}

/// Closes such a statement.
pub(super) fn close(ends: &mut Ends<'_>, name: &[u8], bytes: &[u8], muted: bool) {
    let Some(here) = Names::of_client(name) else {
        return ends.pass(bytes, What::Close(None), muted);
    };
    rewrite::statement(ends.out(), b'C', here.as_bytes());
    ends.queue.push(What::Close(None), muted);
}

/// Lets the server report if SQL has prepared a statement under this name.
pub(super) fn check(ends: &mut Ends<'_>, name: &[u8]) {
    let own = Names::of_client(name);
    let here = own.as_deref().map_or(name, str::as_bytes);
    rewrite::parse(ends.out(), here, b"", &[]);
    ends.queue
        .push(What::Parse(PreparedAs::Passing, None), true);
    if let Some(own) = own.clone() {
        note(ends, own, name);
    }
    ends.close_statement(here);
}

/// Notes the name of a statement at the server, in the last message sent.
fn note(ends: &mut Ends<'_>, here: String, name: &[u8]) {
    let renames = Renames::of(here, name);
    ends.queue.note_renames(Box::new(renames));
}
