//! Checks for arbitrary texts: `./test fuzz` makes them up, and every test run takes those that
//! were kept.

use windrow_database::Options;

use super::{File, Settings};
use crate::databases::{self, DRIVERS};

/// Stands wherever a secret may stand. Where it is shown, it is tried with the other one in its
/// place: what is shown all the same is no secret, because the text around it says it as well.
const SECRET: &str = "s3ntinel";
const ANOTHER: &str = "4nother";

/// A configuration that goes on in any way behind its secrets: none of them is ever shown.
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
    // As the value of a key that is no secret it may be shown, also as one that this key does not
    // take, but not where the line is wrong in another way: the key may have been meant to be one.
    silent(|secret| {
        let text = format!("{text}\"{secret}\"\n");
        match !names_secret(&text) && File::parse(&text).is_ok() {
            true => String::new(),
            false => read(text).replace(&format!("the value {secret} is not known here"), ""),
        }
    });
}

/// True if the last line gives a value to a key of a secret.
fn names_secret(text: &str) -> bool {
    let line = text.lines().next_back().unwrap_or_default();
    let name = line.split('=').next().unwrap_or_default();
    let name = name.rsplit('.').next().unwrap_or_default();
    let name = name.trim_matches(|c: char| c.is_whitespace() || c == '"' || c == '\'');
    super::keys::is_secret(name)
}

/// A URL that goes on in any way behind its password: neither its refusal nor what is shown of it
/// has the password.
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
                // An embedded database would make files of these names.
                if *scheme != "sqlite" {
                    silent(|secret| opened(&form(secret)));
                }
            }
        }
    }
}

/// Returns a driver's refusal of a URL; nothing for one that it takes.
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
