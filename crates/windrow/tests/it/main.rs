//! The gateway as its clients see it: over HTTP and as a library, against real databases.

mod alone;
mod command;
mod examples;
mod input;
mod library;
mod operation;
mod poison;
mod restart;
mod schema;
mod shared_keys;
mod support;
mod values;
