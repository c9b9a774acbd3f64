//! Shows what is read from a text: `cargo run -p windrow-sql --example reading -- "INSERT INTO t
//! VALUES (1)"`.

#![expect(clippy::print_stdout, reason = "it shows something")]

use windrow_sql::{lift, read};

fn main() {
    for text in std::env::args().skip(1) {
        println!("{:#?}", read(&text, &[]));
        if let Some(lifter) = lift(&text, true) {
            println!("{:#?}", lifter.lifted());
        }
    }
}
