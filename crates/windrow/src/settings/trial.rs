//! What texts of any kind are tried with: chance makes them up (`./test fuzz`), and every test run
//! takes those that it kept.

use windrow_core::Fault;
use windrow_database::Options;

use super::{File, Settings};
use crate::databases::{self, DRIVERS};

/// Stands wherever a secret may stand.
const SECRET: &str = "s3ntinel";

/// A configuration that goes on in any way behind its secrets: none of them is ever shown.
pub fn configuration(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if text.contains(SECRET) {
        return;
    }
    let url = format!("postgres://u:{SECRET}@h/d?password={SECRET}");
    for text in [
        format!("[database]\nurl = \"{url}\"\n[http]\ntoken = \"{SECRET}\"\n{text}"),
        format!("[pg.users.u]\nserver_password = \"{SECRET}\"\nverifier = \"{SECRET}\"\n{text}"),
        format!("{text}\ntoken = \"{SECRET}\"\n"),
        format!("{text}\"{SECRET}\"\n"),
    ] {
        match File::parse(&text) {
            Ok(file) => {
                silent(&format!("{file:?}"));
                match Settings::new(&file) {
                    Ok(settings) => silent(&settings.database),
                    Err(error) => silent(&format!("{error:?}")),
                }
            }
            Err(error) => silent(&format!("{error:?}")),
        }
    }
}

/// A URL that goes on in any way behind its password: neither its refusal nor what is shown of it
/// has the password.
pub fn url(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if text.contains(SECRET) {
        return;
    }
    for driver in DRIVERS {
        for scheme in driver.schemes() {
            for url in [
                format!("{scheme}://u:{SECRET}@h{text}"),
                format!("{scheme}://{text}:{SECRET}@h/d"),
                format!("{scheme}://h/d?{text}&password={SECRET}"),
                format!("{scheme}:{text}?token={SECRET}"),
            ] {
                silent(&super::shown::url(&url));
                // An embedded database would make files of these names.
                if *scheme != "sqlite"
                    && let Some(Err(fault)) = opened(&url)
                {
                    silent(&fault);
                }
            }
        }
    }
}

/// What a driver says of a URL that it refuses.
fn opened(url: &str) -> Option<Result<(), String>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().ok()?;
    let opened = runtime.block_on(databases::open(url, &Options::default()));
    Some(
        opened
            .map(drop)
            .map_err(|fault: Fault| format!("{fault:?}")),
    )
}

fn silent(said: &str) {
    assert!(!said.contains(SECRET), "{said}");
}

#[cfg(test)]
#[path = "../../../../fuzz/corpus.rs"]
mod corpus;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_chance_has_found() {
        corpus::each("configuration", configuration);
        corpus::each("url", url);
    }
}
