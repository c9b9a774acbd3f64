//! Checks for arbitrary texts: `./test fuzz` generates them, and every test run repeats those that
//! were kept.

use windrow_database::Options;

use super::{File, Settings};
use crate::databases::{self, DRIVERS};

/// A secret that is put wherever one may be. If it is shown, the check is repeated with another
/// one: if the same text is shown again, it is not the secret, because the text around it contains
/// it too.
const SECRET: &str = "s3ntinel";
const ANOTHER: &str = "4nother";

/// Checks that a configuration, whatever follows its secrets, never shows one of them.
pub fn configuration(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let said = |file: &File| match Settings::new(file) {
        Ok(settings) => format!("{file:?} {}", settings.database),
        Err(error) => format!("{file:?} {error:?}"),
    };
    let read = |text: String| match File::parse(&text) {
        Ok(file) => said(&file),
        Err(error) => format!("{error:?}"),
    };
    silent(|secret| {
        let url = format!("postgres://u:{secret}@h/d?password={secret}");
        read(format!(
            "[database]\nurl = \"{url}\"\n[http]\ntoken = \"{secret}\"\n{text}"
        ))
    });
    silent(|secret| {
        read(format!(
            "[pg.users.u]\nserver_password = \"{secret}\"\nverifier = \"{secret}\"\n{text}"
        ))
    });
    silent(|secret| read(format!("{text}\ntoken = \"{secret}\"\n")));
    // The value of a key that is not secret may be shown, even if it is invalid for this key, but
    // not if the line has another error: then the key may have been intended as a secret one.
    silent(|secret| {
        let text = format!("{text}\"{secret}\"\n");
        match !names_secret(&text) && File::parse(&text).is_ok() {
            true => String::new(),
            false => read(text).replace(&format!("the value {secret} is not known here"), ""),
        }
    });
}

/// Returns true if the last line gives a value to a key for secrets.
fn names_secret(text: &str) -> bool {
    let line = text.lines().next_back().unwrap_or_default();
    let name = line.split('=').next().unwrap_or_default();
    let name = name.rsplit('.').next().unwrap_or_default();
    let name = name.trim_matches(|c: char| c.is_whitespace() || c == '"' || c == '\'');
    super::keys::is_secret(name)
}

/// Checks that a URL, whatever follows its password, never shows it: neither in a refusal nor in
/// the form for display.
pub fn url(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    for driver in DRIVERS {
        for scheme in driver.schemes() {
            let forms: [&dyn Fn(&str) -> String; 4] = [
                &|secret| format!("{scheme}://u:{secret}@h{text}"),
                &|secret| format!("{scheme}://{text}:{secret}@h/d"),
                &|secret| format!("{scheme}://h/d?{text}&password={secret}"),
                &|secret| format!("{scheme}:{text}?token={secret}"),
            ];
            for form in forms {
                silent(|secret| super::shown::url(&form(secret)));
                // An embedded database would create files with these names.
                if *scheme != "sqlite" {
                    silent(|secret| opened(&form(secret)));
                }
            }
        }
    }
}

/// Returns a driver's refusal of a URL; empty if it accepts the URL.
fn opened(url: &str) -> String {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() else {
        return String::new();
    };
    let opened = runtime.block_on(databases::open(url, &Options::default()));
    opened.map_or_else(|fault| format!("{fault:?}"), |_| String::new())
}

fn silent(say: impl Fn(&str) -> String) {
    let said = say(SECRET);
    if said.contains(SECRET) {
        assert!(say(ANOTHER).contains(SECRET), "{said}");
    }
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
