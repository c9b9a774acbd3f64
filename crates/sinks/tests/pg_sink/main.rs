//! The PostgreSQL sink against a real server.

#![cfg(feature = "postgres")]

mod forms;
mod support;
