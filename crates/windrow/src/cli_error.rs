//! Errors of a command line, with the environment variables that stand for its options.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Options that are required, and the environment variables that may replace them, so that a
/// password need not be in the process list.
const FROM_ENVIRONMENT: [(&str, &str); 2] = [("--to", "WINDROW_TO"), ("--from", "WINDROW_FROM")];

/// Ends the program with the error of a command line.
pub(crate) fn refuse(error: clap::Error) -> ! {
    from_environment(with_environment(error)).exit()
}

/// Adds the environment variable that a refused value came from.
fn from_environment(mut error: clap::Error) -> clap::Error {
    let (Some(ContextValue::String(argument)), Some(ContextValue::String(value))) = (
        error.get(ContextKind::InvalidArg),
        error.get(ContextKind::InvalidValue),
    ) else {
        return error;
    };
    let option = argument.split([' ', '[']).next().unwrap_or_default();
    let is_named = std::env::args().any(|word| word.split('=').next() == Some(option));
    let name = option.trim_start_matches("--").to_ascii_uppercase();
    let name = format!("WINDROW_{}", name.replace('-', "_"));
    if !is_named && std::env::var(&name).as_ref() == Ok(value) {
        let tip = format!(
            "the value comes from the environment variable {name}; correct or unset the variable"
        );
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![tip.into()]),
        );
    }
    error
}

/// Adds that a missing option may come from the environment.
fn with_environment(mut error: clap::Error) -> clap::Error {
    let missing = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(missing))
            if error.kind() == ErrorKind::MissingRequiredArgument =>
        {
            missing.clone()
        }
        _ => return error,
    };
    let is_missing = |option: &str| {
        missing
            .iter()
            .any(|name| name.split(' ').next() == Some(option))
    };
    let mut tips = FROM_ENVIRONMENT
        .iter()
        .filter(|(option, _)| is_missing(option));
    if let Some((option, name)) = tips.next() {
        let tip = format!(
            "{option} names a database, as in postgres://USER@HOST/DATABASE or sqlite:PATH; the environment variable {name} stands for it"
        );
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![tip.into()]),
        );
    }
    error
}
