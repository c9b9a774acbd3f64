//! Opens a file by its format.

use super::csv::Csv;
use super::csv_text::style::{Escapes, Style};
use super::fault::SourceFault;
use super::input::RawInput;
use super::ndjson::Ndjson;
use super::options::{Escape, Format, Options};
use super::port::Source;
use super::window::Window;

/// Opens a file, or standard input for `-`. Archives of gzip, zstd and zip are unpacked.
///
/// # Errors
/// [`SourceFault`]: it cannot be opened, is empty, or its beginning is invalid; the options
/// contradict each other.
pub fn open(path: &str, options: &Options) -> Result<Box<dyn Source>, SourceFault> {
    let input = RawInput::open(path, options.head)?;
    start(input, options)
}

/// Opens any reader instead of a file.
#[cfg(any(test, fuzzing))]
pub(crate) fn open_reader(
    name: &str,
    reader: impl std::io::Read + Send + 'static,
    options: &Options,
) -> Result<Box<dyn Source>, SourceFault> {
    start(RawInput::try_of(name, reader)?, options)
}

fn start(mut input: RawInput, options: &Options) -> Result<Box<dyn Source>, SourceFault> {
    let format = format(&input, options)?;
    check(format, options).map_err(|reason| {
        input.io(std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            reason,
        ))
    })?;
    if format == Format::Parquet {
        return parquet(input);
    }
    input.decode(options.encoding.as_deref())?;
    let window = Window::new(input);
    Ok(match format {
        Format::Ndjson => Box::new(Ndjson::open(window, options.unfinished)?),
        _ => Box::new(Csv::open(window, options, style(format, options))?),
    })
}

/// Returns the characters that have a meaning in a CSV file.
fn style(format: Format, options: &Options) -> Style {
    let is_text = format == Format::Text;
    Style {
        delimiter: options.delimiter.unwrap_or(match format {
            Format::Tsv | Format::Text => b'\t',
            _ => b',',
        }),
        quote: options.quote.filter(|_| !is_text),
        line_end: b'\n',
        escapes: match options.escape {
            _ if is_text => Some(Escapes::Copy),
            // A doubled quote is read as a quote in any case.
            Escape::Character(escape) if Some(escape) != options.quote => {
                Some(Escapes::LoadData(escape))
            }
            _ => None,
        },
    }
}

fn format(input: &RawInput, options: &Options) -> Result<Format, SourceFault> {
    let looks_parquet = input.head.starts_with(b"PAR1");
    if let Some(format) = options.format {
        return Ok(format);
    }
    for (mark, what) in [
        (&b"BZh"[..], "a bzip2 archive"),
        (b"\xfd7zXZ\0", "an xz archive"),
        (b"SQLite format 3\0", "an SQLite database"),
    ] {
        if input.head.starts_with(mark) {
            return Err(input.form(format!(
                "this is {what}; files of CSV, NDJSON and Parquet are read, the first two packed with gzip, zstd or zip too"
            )));
        }
    }
    Ok(match Format::by_name(&input.name) {
        _ if looks_parquet => Format::Parquet,
        Some(format) => format,
        None => Format::by_head(&input.head),
    })
}

fn check(format: Format, options: &Options) -> Result<(), String> {
    let is_csv = matches!(format, Format::Csv | Format::Tsv | Format::Text);
    let escape = match options.escape {
        Escape::Character(escape) => Some(escape),
        Escape::Unsaid | Escape::None => None,
    };
    let marks = options.delimiter.iter().chain(&options.quote);
    for mark in marks.chain(&escape).filter(|_| is_csv) {
        if !mark.is_ascii() || matches!(mark, b'\n' | b'\r' | 0) {
            return Err(
                "the delimiter, the quote and the escape are each one ASCII character, and no line end".into(),
            );
        }
    }
    if format == Format::Text && options.escape != Escape::Unsaid {
        return Err("COPY's text format has escapes of its own; leave --escape out".into());
    }
    let style = style(format, options);
    let others = [style.quote, style.escapes.map(Escapes::character)];
    if is_csv && others.contains(&Some(style.delimiter)) {
        return Err("the delimiter cannot be the quote or the escape too".into());
    }
    if format == Format::Parquet && options.encoding.is_some() {
        return Err("an encoding cannot be given for Parquet, whose texts are UTF-8".into());
    }
    Ok(())
}

#[cfg(feature = "parquet")]
fn parquet(input: RawInput) -> Result<Box<dyn Source>, SourceFault> {
    Ok(Box::new(super::parquet::Parquet::open(input)?))
}

#[cfg(not(feature = "parquet"))]
#[expect(
    clippy::needless_pass_by_value,
    reason = "as the one that reads Parquet takes it"
)]
fn parquet(input: RawInput) -> Result<Box<dyn Source>, SourceFault> {
    Err(input
        .form("this is a Parquet file, and this program was built without the feature `parquet`"))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
