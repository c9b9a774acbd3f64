use std::io::{Read, Write};

use proptest::prelude::*;
use windrow_core::{Field, Rows};

use super::*;
use crate::source::{Portion, PortionLimits};

const ALL: PortionLimits = PortionLimits {
    records: usize::MAX,
    bytes: usize::MAX,
};

/// Gives its bytes a few at a time.
struct Dribble {
    data: std::io::Cursor<Vec<u8>>,
    most: usize,
}

impl Read for Dribble {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = buffer.len().min(self.most);
        self.data.read(&mut buffer[..bytes])
    }
}

fn dribble(data: &[u8], most: usize) -> Dribble {
    let data = std::io::Cursor::new(data.to_vec());
    Dribble { data, most }
}

fn open_text(name: &str, text: &[u8], options: &Options) -> Result<Box<dyn Source>, SourceFault> {
    start(RawInput::try_of(name, dribble(text, usize::MAX))?, options)
}

fn fault(name: &str, text: &[u8], options: &Options) -> String {
    match open_text(name, text, options) {
        Ok(mut source) => read_all(&mut *source, ALL).2.expect("a fault"),
        Err(fault) => fault.to_string(),
    }
}

/// A row: its record's number, line, raw record and fields.
type Found = (u64, u64, String, Vec<OwnedField>);

/// A field that keeps its text.
#[derive(Clone, Debug, PartialEq)]
enum OwnedField {
    Null,
    Plain(String),
    Text(String),
    Number(String),
    Bool(bool),
    Json(String),
    Bytes(Vec<u8>),
}

impl From<Field<'_>> for OwnedField {
    fn from(field: Field<'_>) -> Self {
        match field {
            Field::Null => Self::Null,
            Field::Plain(text) => Self::Plain(text.into()),
            Field::Text(text) => Self::Text(text.into()),
            Field::Number(text) => Self::Number(text.into()),
            Field::Bool(truth) => Self::Bool(truth),
            Field::Json(text) => Self::Json(text.into()),
            Field::Bytes(bytes) => Self::Bytes(bytes.into()),
        }
    }
}

fn plain(text: &str) -> OwnedField {
    OwnedField::Plain(text.into())
}

fn rows_of(portion: &Portion) -> Vec<Found> {
    let rows: &Rows = &portion.rows;
    let fields: Vec<OwnedField> = rows.fields().map(OwnedField::from).collect();
    let mut fields = fields.chunks(rows.columns().max(1));
    let found = (0..rows.len()).map(|row| {
        let raw = String::from_utf8(portion.raw(row).to_vec()).unwrap();
        let fields = fields.next().unwrap_or_default().to_vec();
        (portion.records[row], rows.lines()[row], raw, fields)
    });
    found.collect()
}

type BadOne = (u64, u64, String, String);

fn read_all(
    source: &mut dyn Source,
    most: PortionLimits,
) -> (Vec<Found>, Vec<BadOne>, Option<String>) {
    read_each(source, most, &mut |source, portion| {
        source.read(portion, most)
    })
}

fn read_each(
    source: &mut dyn Source,
    most: PortionLimits,
    read: &mut dyn FnMut(&mut dyn Source, &mut Portion) -> Result<bool, SourceFault>,
) -> (Vec<Found>, Vec<BadOne>, Option<String>) {
    let mut portion = Portion::new(source.columns().unwrap());
    let (mut rows, mut bad, mut end) = (Vec::new(), Vec::new(), 0);
    loop {
        let more = read(source, &mut portion);
        rows.extend(rows_of(&portion));
        bad.extend(portion.bad.iter().map(|b| {
            let raw = String::from_utf8_lossy(&b.raw).into_owned();
            (b.record, b.line, raw, b.reason.clone())
        }));
        let count = (portion.records.len() + portion.bad.len()) as u64;
        assert!(count <= most.records as u64);
        assert_eq!(portion.end, end + count);
        end = portion.end;
        match more {
            Ok(true) => assert!(count > 0),
            Ok(false) => return (rows, bad, None),
            Err(fault) => return (rows, bad, Some(fault.to_string())),
        }
    }
}

fn whole(name: &str, text: &[u8], options: &Options) -> (Vec<Found>, Vec<BadOne>) {
    let mut source = open_text(name, text, options).unwrap();
    let (rows, bad, fault) = read_all(&mut *source, ALL);
    assert_eq!(fault, None);
    (rows, bad)
}

fn fields(name: &str, text: &[u8], options: &Options) -> Vec<Vec<OwnedField>> {
    let (rows, bad) = whole(name, text, options);
    assert_eq!(bad, []);
    rows.into_iter().map(|(.., fields)| fields).collect()
}

fn names(source: &dyn Source) -> Vec<String> {
    let names = source.names().unwrap_or_default();
    names.iter().map(|name| name.to_string()).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

#[test]
fn csv_rows_have_true_lines_and_raw_records() {
    let text = b"\xef\xbb\xbfid,note\r\n1,\"a\r\nb\"\r\n\r\n2,\"say \"\"hi\"\"\"\r\n3,x";
    let mut source = open_text("x.csv", text, &Options::default()).unwrap();
    assert_eq!(names(&*source), ["id", "note"]);
    let (rows, bad, _) = read_all(&mut *source, ALL);
    assert_eq!(bad, []);
    let text = |text: &str| OwnedField::Text(text.into());
    assert_eq!(
        rows,
        [
            (
                0,
                2,
                "1,\"a\r\nb\"".into(),
                vec![plain("1"), text("a\r\nb")]
            ),
            (
                1,
                5,
                "2,\"say \"\"hi\"\"\"".into(),
                vec![plain("2"), text("say \"hi\"")]
            ),
            (2, 6, "3,x".into(), vec![plain("3"), plain("x")]),
        ]
    );
}

#[test]
fn what_is_null_in_csv() {
    let text = b"a,b,c\n,\"\",NA\n\"NA\",x,\n";
    let found = fields("x.csv", text, &Options::default());
    let text_of = |text: &str| OwnedField::Text(text.into());
    assert_eq!(found[0], [OwnedField::Null, text_of(""), plain("NA")]);
    assert_eq!(found[1], [text_of("NA"), plain("x"), OwnedField::Null]);
    let options = Options {
        null: vec!["NA".into()],
        ..Options::default()
    };
    let found = fields("x.csv", text, &options);
    assert_eq!(found[0], [plain(""), text_of(""), OwnedField::Null]);
    assert_eq!(found[1], [text_of("NA"), plain("x"), plain("")]);
}

#[test]
fn json_within_csv_stays_json() {
    let found = fields(
        "x.csv",
        b"a,b\n\"{\"\"k\"\": 1}\",[x]\n",
        &Options::default(),
    );
    assert_eq!(
        found[0],
        [OwnedField::Json("{\"k\": 1}".into()), plain("[x]")]
    );
}

#[test]
fn an_empty_line_is_a_row_only_where_rows_have_one_field() {
    let found = fields("x.csv", b"a\n1\n\n2\n", &Options::default());
    assert_eq!(found, [[plain("1")], [OwnedField::Null], [plain("2")]]);
    let (rows, _) = whole("x.csv", b"\na,b\n\n1,2\n\n", &Options::default());
    assert_eq!((rows.len(), rows[0].0, rows[0].1), (1, 0, 4));
}

#[test]
fn bad_records_have_reasons_and_reading_goes_on() {
    let text = b"a,b\n1\n1,2,3\n1,\xff\n1,\0\n1,x\ry\n\"7\n\",8\n9,9\n";
    let (rows, bad) = whole("x.csv", text, &Options::default());
    let found: Vec<_> = rows.iter().map(|row| (row.0, row.1)).collect();
    assert_eq!(found, [(5, 7), (6, 9)]);
    let reasons: Vec<_> = bad.iter().map(|b| (b.0, b.1, b.3.as_str())).collect();
    let not_utf8 = "is no text in the file's encoding from byte 3 of the record on (without another encoding being \
                    named, a file is UTF-8)";
    assert_eq!(
        reasons,
        [
            (0, 2, "has 1 field where 2 are expected"),
            (1, 3, "has 3 fields where 2 are expected"),
            (2, 4, not_utf8),
            (
                3,
                5,
                "has a NUL character, as its byte 3, which no column of text can hold"
            ),
            (
                4,
                6,
                "has a carriage return outside of quotes, which ends no line in this file"
            ),
        ]
    );
    assert_eq!(bad[1].2, "1,2,3");
}

#[test]
fn a_file_that_ends_inside_of_quotes_is_a_fault_behind_its_good_rows() {
    let text = b"a,b\n1,2\n3,\"x\ny\",\n4,\"cut\nof\n";
    let mut source = open_text("x.csv", text, &Options::default()).unwrap();
    let (rows, bad, fault) = read_all(&mut *source, ALL);
    assert_eq!((rows.len(), bad.len()), (1, 1));
    let fault = fault.unwrap();
    let expected = "x.csv, line 5: the file ends inside of a quoted field that began on line 5";
    assert!(fault.starts_with(expected), "{fault}");
}

#[test]
fn columns_are_chosen_and_put_in_order() {
    let options = Options {
        header: false,
        ..Options::default()
    };
    let mut source = open_text("x", b"a;b,c\nd;e,f\n", &options).unwrap();
    assert_eq!((source.names(), source.columns()), (None, Some(2)));
    source.choose(&[1, 0, 1]);
    let mut portion = Portion::new(3);
    assert!(source.read(&mut portion, ALL).unwrap());
    assert_eq!(
        rows_of(&portion)[1].3,
        [plain("f"), plain("d;e"), plain("f")]
    );
    let found = fields("x.tsv", b"a\tb\n1\t2,3\n", &Options::default());
    assert_eq!(found, [[plain("1"), plain("2,3")]]);
    let mut source =
        open_text("x.ndjson", b"{\"a\":1,\"b\":\"x\"}\n", &Options::default()).unwrap();
    source.choose(&[1]);
    let mut portion = Portion::new(1);
    assert!(source.read(&mut portion, ALL).unwrap());
    assert_eq!(rows_of(&portion)[0].3, [OwnedField::Text("x".into())]);
}

#[test]
fn ndjson_rows_are_objects() {
    let text = b"\n{\"id\":1,\"x\":{\"k\":[1]}}\r\n{\"x\":\"\\u00e4\"}\n{\"id\":1.50}\n";
    let mut source = open_text("x.jsonl", text, &Options::default()).unwrap();
    assert_eq!(names(&*source), ["id", "x"]);
    let (rows, ..) = read_all(&mut *source, ALL);
    let number = |text: &str| OwnedField::Number(text.into());
    let raw = "{\"id\":1,\"x\":{\"k\":[1]}}".to_owned();
    let json = OwnedField::Json("{\"k\":[1]}".into());
    assert_eq!(rows[0], (0, 2, raw, vec![number("1"), json]));
    assert_eq!(rows[1].3, [OwnedField::Null, OwnedField::Text("ä".into())]);
    assert_eq!((rows[2].1, &rows[2].3[0]), (4, &number("1.50")));
}

#[test]
fn lines_before_the_first_object_are_bad_ones() {
    let text = b"oops\n{\"a\":1}\n{\"b\":1}\n{\"a\":2}";
    let (rows, bad) = whole("x.ndjson", text, &Options::default());
    let found: Vec<_> = rows.iter().map(|row| (row.0, row.1)).collect();
    assert_eq!(found, [(1, 2), (3, 4)]);
    let places: Vec<_> = bad.iter().map(|b| (b.0, b.1)).collect();
    assert_eq!(places, [(0, 1), (2, 3)]);
}

#[test]
fn what_makes_no_sense_as_a_whole_is_a_clear_fault() {
    let default = Options::default();
    let ndjson = Options {
        format: Some(Format::Ndjson),
        ..Options::default()
    };
    let quotes = Options {
        delimiter: Some(b'"'),
        ..Options::default()
    };
    let encoding = Options {
        encoding: Some("klingon".into()),
        ..Options::default()
    };
    let hundred_lines = "no json\n".repeat(101);
    for (name, text, options, expected) in [
        (
            "x.csv",
            &b""[..],
            &default,
            "x.csv, line 1: the file is empty; it has no columns",
        ),
        (
            "x.csv",
            b"\n\n",
            &default,
            "x.csv, line 1: the file is empty",
        ),
        ("x.json", b"", &default, "x.json, line 1: the file is empty"),
        (
            "x.csv",
            b"a,b,a\n",
            &default,
            "x.csv, line 1: the column \"a\" occurs twice; the first line is to name",
        ),
        (
            "x.csv",
            b",,\n",
            &default,
            "x.csv, line 1: it has no names; the first line is to name",
        ),
        (
            "x.json",
            b"[{\"a\":1}]",
            &default,
            "x.json, line 1: begins with an array; give one object a line",
        ),
        (
            "x",
            hundred_lines.as_bytes(),
            &ndjson,
            "x, line 101: is not a JSON object",
        ),
        (
            "x",
            b"PK\x03\x04..",
            &default,
            "x, line 1: this is a zip archive",
        ),
        (
            "x.csv.gz",
            b"a,b\n",
            &default,
            "x.csv.gz, line 1: the file is named as a gzip archive, and is none",
        ),
        (
            "x.parquet",
            b"PAR1",
            &default,
            "x.parquet, line 1: Parquet is read from its end",
        ),
        (
            "x.csv",
            b"a",
            &quotes,
            "x.csv: the delimiter cannot be the quote or the escape too",
        ),
        (
            "x.csv",
            b"a",
            &encoding,
            "x.csv: there is no encoding called \"klingon\"",
        ),
    ] {
        let found = fault(name, text, options);
        assert!(found.starts_with(expected), "{found}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    let found = open(&path, &default).err().unwrap().to_string();
    assert!(
        found.ends_with("is a folder; name the files in it"),
        "{found}"
    );
    let found = open(&format!("{path}/none.csv"), &default).err().unwrap();
    assert!(matches!(found, SourceFault::Io { .. }), "{found}");
}

#[test]
fn archives_are_unpacked_by_what_they_are() {
    let two = [gzip(b"a,b\n1,2\n"), gzip(b"3,4\n")].concat();
    let expected = [[plain("1"), plain("2")], [plain("3"), plain("4")]];
    assert_eq!(fields("x.csv.gz", &two, &Options::default()), expected);
    assert_eq!(fields("-", &two, &Options::default()), expected);
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
    let two = [zstd(b"a,b\n1,2\n"), zstd(b"3,4\n")].concat();
    assert_eq!(fields("x", &two, &Options::default()), expected);
}

/// A zip archive of these files.
fn zipped(files: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in files {
        let options = zip::write::SimpleFileOptions::default();
        let options = options.compression_method(match text.len() {
            0..8 => zip::CompressionMethod::Stored,
            _ => zip::CompressionMethod::Deflated,
        });
        writer.start_file(*name, options).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn a_zip_archive_of_one_file_is_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flights.zip");
    let name = path.display().to_string();
    let opened = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        open(&name, &Options::default())
    };
    let beside = ("__MACOSX/._a.tsv", "rubbish");
    for text in ["a\tb\n1\t2\n", "a\n1\n"] {
        let mut source = opened(&zipped(&[("a.tsv", text), beside])).unwrap();
        let (rows, bad, fault) = read_all(&mut *source, ALL);
        assert_eq!((rows.len(), bad.len(), fault), (1, 0, None), "{text}");
        assert_eq!(names(&*source)[0], "a", "{text}");
    }
    let refused = |found: Result<Box<dyn Source>, SourceFault>| found.err().unwrap().to_string();
    let two = refused(opened(&zipped(&[("a.csv", "a\n1\n"), ("b.csv", "a\n2\n")])));
    assert!(
        two.contains("holds 2 files") && two.contains("unzip -p FILE a.csv"),
        "{two}"
    );
    let none = refused(opened(&zipped(&[])));
    assert!(none.ends_with("holds no file"), "{none}");
    let whole = zipped(&[("a.csv", "a\n1\n")]);
    let cut = refused(opened(&whole[..whole.len() - 30]));
    assert!(cut.contains("is damaged"), "{cut}");
    // A row that is not what was packed.
    let at = whole
        .windows(4)
        .position(|bytes| bytes == b"a\n1\n")
        .unwrap();
    let mut other = whole;
    other[at + 2] = b'7';
    let damaged = match opened(&other) {
        Ok(mut source) => read_all(&mut *source, ALL).2.unwrap(),
        Err(fault) => fault.to_string(),
    };
    assert!(damaged.contains("its checksum differs"), "{damaged}");
}

#[test]
fn a_cut_archive_is_told_and_its_whole_rows_are_read() {
    let mut text = String::from("a,b\n");
    for row in 0..100_000_u32 {
        text += &format!("{row},{}\n", row.wrapping_mul(2_654_435_761));
    }
    let mut zstd = zstd::Encoder::new(Vec::new(), 1).unwrap();
    zstd.include_checksum(true).unwrap();
    zstd.write_all(text.as_bytes()).unwrap();
    let zstd = zstd.finish().unwrap();
    for packed in [gzip(text.as_bytes()), zstd] {
        let cut = &packed[..packed.len() / 2];
        let mut source = open_text("x.csv", cut, &Options::default()).unwrap();
        let (rows, bad, fault) = read_all(&mut *source, ALL);
        assert_eq!(bad, []);
        assert!(
            rows.len() > 10_000 && rows.len() < 100_000,
            "{}",
            rows.len()
        );
        let fault = fault.unwrap();
        let line = format!("x.csv, line {}: the ", rows.len() + 2);
        assert!(
            fault.starts_with(&line) && fault.contains("archive is cut off"),
            "{fault}"
        );
        let mut damaged = packed.clone();
        damaged[packed.len() / 2] ^= 0x55;
        let found = of_damaged(&damaged);
        assert!(found.contains("archive is "), "{found}");
    }
}

fn of_damaged(packed: &[u8]) -> String {
    fault("x.csv", packed, &Options::default())
}

#[test]
fn other_encodings_are_read() {
    let with = |label: &str| Options {
        encoding: Some(label.into()),
        ..Options::default()
    };
    let latin = fields("x.csv", b"a,b\n\xe4,\x80\n", &with("latin1"));
    assert_eq!(latin, [[plain("ä"), plain("€")]]);
    let text = "\u{feff}a,b\r\nä,😀\r\n";
    let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for options in [Options::default(), with("utf-16")] {
        assert_eq!(
            fields("x.csv", &utf16, &options),
            [[plain("ä"), plain("😀")]]
        );
    }
    let (rows, bad) = whole("x.csv", b"a,b\n1,\x81\x20\n3,4\n", &with("shift_jis"));
    assert_eq!((rows.len(), rows[0].1), (1, 3));
    assert!(
        bad[0].3.starts_with("is no text in the file's encoding"),
        "{bad:?}"
    );
}

#[test]
fn files_are_told_by_name_and_by_their_first_bytes() {
    for (name, head, format) in [
        ("a/b.CSV", "", Format::Csv),
        ("b.tsv.zst", "", Format::Tsv),
        ("b.jsonl.gz", "", Format::Ndjson),
        ("b.pq", "", Format::Parquet),
        ("-", " \n{\"a\":1}", Format::Ndjson),
        ("-", "a,b", Format::Csv),
        ("x.csv", "PAR1....PAR1", Format::Parquet),
    ] {
        let mut input = RawInput::of("", dribble(head.as_bytes(), 1));
        input.name = name.into();
        let found = super::format(&input, &Options::default()).unwrap();
        assert_eq!(found, format, "{name} {head}");
    }
}

#[test]
fn portions_keep_to_their_bytes_and_progress_counts_packed_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv.gz");
    let packed = gzip("a\n".repeat(10_000).as_bytes());
    std::fs::write(&path, &packed).unwrap();
    let mut source = open(path.to_str().unwrap(), &Options::default()).unwrap();
    let mut portion = Portion::new(1);
    let most = PortionLimits {
        records: 1000,
        bytes: 100,
    };
    assert!(source.read(&mut portion, most).unwrap());
    assert_eq!(portion.rows.len(), 100);
    let (rows, ..) = read_all_from(&mut *source, portion.end);
    assert_eq!(rows, 9899);
    assert_eq!(source.read_bytes(), packed.len() as u64);
}

fn read_all_from(source: &mut dyn Source, from: u64) -> (u64, u64) {
    let mut portion = Portion::new(1);
    while source.read(&mut portion, ALL).unwrap() {}
    (portion.end - from, portion.end)
}

fn text_field() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("NA".to_owned()),
        "[0-9]{1,6}",
        "[a-c\",;\n\r\t ä€😀]{0,8}",
    ]
}

fn records() -> impl Strategy<Value = Vec<Vec<String>>> {
    (1_usize..5).prop_flat_map(|columns| {
        let record = proptest::collection::vec(text_field(), columns);
        proptest::collection::vec(record, 1..30)
    })
}

fn styles() -> impl Strategy<Value = (csv::QuoteStyle, csv::Terminator, u8)> {
    let quotes = prop_oneof![
        Just(csv::QuoteStyle::Always),
        Just(csv::QuoteStyle::Necessary),
        Just(csv::QuoteStyle::NonNumeric),
    ];
    let ends = prop_oneof![
        Just(csv::Terminator::CRLF),
        Just(csv::Terminator::Any(b'\n')),
        Just(csv::Terminator::Any(b'\r')),
    ];
    (
        quotes,
        ends,
        prop_oneof![Just(b','), Just(b';'), Just(b'\t')],
    )
}

/// Records as the `csv` crate writes them, and of each where it begins and ends.
fn written(
    records: &[Vec<String>],
    (quotes, end, delimiter): (csv::QuoteStyle, csv::Terminator, u8),
) -> (Vec<u8>, Vec<(usize, usize)>) {
    let (mut text, mut places) = (Vec::new(), Vec::new());
    for record in records {
        let mut writer = csv::WriterBuilder::new()
            .quote_style(quotes)
            .terminator(end)
            .delimiter(delimiter)
            .from_writer(Vec::new());
        writer.write_record(record).unwrap();
        let from = text.len();
        text.extend(writer.into_inner().unwrap());
        let ended = if let csv::Terminator::CRLF = end {
            2
        } else {
            1
        };
        places.push((from, text.len() - ended));
    }
    (text, places)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn csv_comes_back_as_the_csv_crate_wrote_it(
        records in records(),
        style in styles(),
        portion in 1_usize..8,
        bytes in 1_usize..40,
        last_line_ends in any::<bool>(),
    ) {
        let (mut text, places) = written(&records, style);
        if !last_line_ends {
            text.truncate(places.last().unwrap().1);
        }
        let options = Options {
            header: false,
            delimiter: Some(style.2),
            ..Options::default()
        };
        let input = RawInput::of("x.csv", dribble(&text, bytes));
        let mut source = start(input, &options).unwrap();
        let most = PortionLimits { records: portion, bytes: usize::MAX };
        let (rows, bad, fault) = read_all(&mut *source, most);
        prop_assert_eq!((&bad[..], fault), (&[][..], None));
        prop_assert_eq!(rows.len(), records.len());
        let line_end = if let csv::Terminator::Any(end) = style.1 { end } else { b'\n' };
        for ((at, row), record) in rows.iter().enumerate().zip(&records) {
            let (from, to) = places[at];
            let line = 1 + memchr::memchr_iter(line_end, &text[..from]).count();
            prop_assert_eq!(row.0, at as u64);
            prop_assert_eq!(row.1, line as u64);
            prop_assert_eq!(row.2.as_bytes(), &text[from..to]);
            for (found, expected) in row.3.iter().zip(record) {
                match found {
                    OwnedField::Null => prop_assert!(expected.is_empty()),
                    OwnedField::Plain(text) => prop_assert!(text == expected && !text.is_empty()),
                    OwnedField::Text(text) => prop_assert_eq!(text, expected),
                    other => prop_assert!(false, "{:?}", other),
                }
            }
        }
    }

    #[test]
    fn what_is_split_later_is_what_is_split_at_once(
        pieces in proptest::collection::vec(
            proptest::sample::select(&[
                "a", "b,c", "1,2", ",", ",", "\n", "\n", "\r\n", "\"", "\"\"", "\"x\ny\"", "é", "\\.", "\r", "\0",
                "1,2\n", "3,\"4\"\n", "\"5\",6\n", "7,8\r\n",
            ][..]),
            0..60,
        ),
        broken in prop_oneof![4 => Just(None), 1 => any::<u8>().prop_map(Some)],
        portion in 1_usize..6,
        bytes in 1_usize..40,
        window in 1_usize..40,
    ) {
        let mut text = b"k,v\n".to_vec();
        text.extend(pieces.concat().bytes());
        text.extend(broken);
        let options = Options::default();
        let most = PortionLimits { records: portion, bytes };
        let opened = || start(RawInput::of("x.csv", dribble(&text, window)), &options);
        let (Ok(mut source), Ok(mut other)) = (opened(), opened()) else {
            return Ok(());
        };
        let at_once = read_all(&mut *source, PortionLimits { records: 1, bytes: usize::MAX });
        let style = std::sync::Arc::new(other.style().expect("columns in their order"));
        let mut unsplit = 0;
        let later = read_each(&mut *other, most, &mut |source, portion| {
            let more = source.read_unsplit(&style, portion, most);
            if let Some(csv) = portion.csv() {
                assert!(csv.records > 0 && csv.text.len() <= bytes + text.len());
                let count = csv.records;
                let (first, last) = portion.lines().unwrap();
                portion.split();
                assert_eq!(portion.records.len() + portion.bad.len(), count);
                let lines = portion.rows.lines();
                assert!(lines.iter().all(|line| (first..=last).contains(line)));
                unsplit += count;
            }
            more
        });
        prop_assert_eq!(at_once, later);
        // Nothing needs care in a file of simple lines.
        if pieces.iter().all(|piece| ["1,2\n", "3,\"4\"\n"].contains(piece)) && broken.is_none() {
            prop_assert_eq!(unsplit, pieces.len());
        }
    }

    #[test]
    fn ndjson_comes_back_as_it_was_written(
        rows in proptest::collection::vec((any::<i64>(), text_field(), any::<Option<bool>>()), 1..30),
        portion in 1_usize..8,
        bytes in 1_usize..40,
        crlf in any::<bool>(),
    ) {
        let mut text = String::new();
        let mut raws = Vec::new();
        for (id, note, flag) in &rows {
            let raw = serde_json::json!({"id": id, "note": note, "flag": flag, "all": [id, note]}).to_string();
            text += &raw;
            text += if crlf { "\r\n" } else { "\n" };
            raws.push(raw);
        }
        let input = RawInput::of("x.ndjson", dribble(text.as_bytes(), bytes));
        let mut source = start(input, &Options::default()).unwrap();
        let names = names(&*source);
        let most = PortionLimits { records: portion, bytes: usize::MAX };
        let (found, bad, fault) = read_all(&mut *source, most);
        prop_assert_eq!((&bad[..], fault), (&[][..], None));
        prop_assert_eq!(found.len(), rows.len());
        for (at, (record, line, raw, fields)) in found.into_iter().enumerate() {
            prop_assert_eq!((record, line), (at as u64, at as u64 + 1));
            prop_assert_eq!(&raw, &raws[at]);
            let (id, note, flag) = &rows[at];
            for (name, field) in names.iter().zip(fields) {
                let expected = match &**name {
                    "id" => OwnedField::Number(id.to_string()),
                    "note" => OwnedField::Text(note.clone()),
                    "flag" => flag.map_or(OwnedField::Null, OwnedField::Bool),
                    _ => OwnedField::Json(serde_json::json!([id, note]).to_string()),
                };
                prop_assert_eq!(field, expected);
            }
        }
    }

    #[test]
    fn no_bytes_make_it_panic(
        text in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..200),
            "[\",;\n\r\\{\\}:a1\\[\\]\\\\]{0,60}".prop_map(String::into_bytes),
        ],
        packing in 0..3,
        format in proptest::option::of(proptest::sample::select(&Format::ALL[..])),
        header in any::<bool>(),
        encoding in proptest::option::of(proptest::sample::select(&["utf-16", "gbk", "latin1"][..])),
        flip in any::<Option<(proptest::sample::Index, u8)>>(),
    ) {
        let mut text = match packing {
            0 => gzip(&text),
            1 => zstd::encode_all(&text[..], 1).unwrap(),
            _ => text,
        };
        if let Some((at, bits)) = flip && !text.is_empty() {
            let at = at.index(text.len());
            text[at] ^= bits;
        }
        let options = Options { format, header, encoding: encoding.map(Into::into), ..Options::default() };
        // A damaged archive can show within its first bytes, which `RawInput::of` takes for whole.
        if let Ok(input) = RawInput::try_of("x", dribble(&text, 3))
            && let Ok(mut source) = start(input, &options)
        {
            read_all(&mut *source, PortionLimits { records: 3, bytes: 50 });
        }
    }
}

/// Portions that are full must not make the source read ahead: it would hold the whole file in the
/// end.
#[test]
fn full_portions_do_not_let_the_window_grow() {
    const LINES: usize = 1 << 20;
    let mut source = open_text("x.csv", &b"12,34\n".repeat(LINES), &Options::default()).unwrap();
    source.choose(&[0, 1]);
    let style = std::sync::Arc::new(source.style().unwrap());
    let most = PortionLimits {
        records: 10,
        bytes: usize::MAX,
    };
    let mut portion = Portion::new(2);
    for _ in 0..200 {
        assert!(source.read_unsplit(&style, &mut portion, most).unwrap());
        assert_eq!(portion.csv().map(|csv| csv.records), Some(10));
    }
    assert!(source.read_bytes() < 1 << 20, "{}", source.read_bytes());
}
