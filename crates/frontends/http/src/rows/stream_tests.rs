use proptest::prelude::*;
use windrow_core::{Op, Value, Write};

use super::{RowReceiver, RowStream};
use crate::plan::Plans;
use crate::rows::position::RowError;
use crate::rows::trial::{self, All, Kind, ReadRows};

const MAX_ROW: usize = 1000;

fn read<'a>(kind: Kind, pieces: impl IntoIterator<Item = &'a [u8]>) -> ReadRows {
    trial::read(kind, MAX_ROW, pieces)
}

fn one(kind: Kind, text: &str) -> ReadRows {
    read(kind, [text.as_bytes()])
}

fn failure(kind: Kind, text: &str) -> (usize, u64, u64, String) {
    let (rows, error) = one(kind, text);
    let error = error.unwrap();
    let position = error.position;
    (
        rows.len(),
        position.line,
        position.column,
        error.fault.message.into(),
    )
}

#[test]
fn blank_lines_a_mark_and_a_missing_last_line_end() {
    let (rows, error) = one(
        Kind::Ndjson,
        "\u{feff}{\"a\":1}\r\n\n  \n {\"a\":2,\"b\":null}",
    );
    assert_eq!(error, None);
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[1].0, ["a", "b"]);
    let (rows, error) = one(Kind::Csv, "\u{feff}a,b\n1,x\n\r\n,\"\"");
    assert_eq!(error, None);
    assert_eq!(rows[0].1, [Value::Int(1), Value::text("x")]);
    assert_eq!(rows[1].1, [Value::Null, Value::text("")]);
    assert_eq!(one(Kind::Array, " [ ] \n"), (vec![], None));
    assert_eq!(one(Kind::Ndjson, ""), (vec![], None));
}

#[test]
fn blanks_may_be_as_many_bytes_as_rows_and_the_limit_of_a_row() {
    let blanks = |count: usize| "\n".repeat(count);
    for (kind, row, end) in [
        (Kind::Ndjson, "{\"a\":1}\n", ""),
        (Kind::Csv, "1234567\n", ""),
        (Kind::Array, "{\"a\":1},", "{\"a\":1}]"),
    ] {
        let head = match kind {
            Kind::Ndjson => "",
            Kind::Csv => "a\n",
            Kind::Array => "[",
        };
        let spread = format!("{}{row}", blanks(7)).repeat(1000);
        let (rows, error) = one(kind, &format!("{head}{spread}{end}"));
        assert_eq!(error, None);
        assert!(rows.len() >= 1000);
        let spread = format!("{}{row}", blanks(20)).repeat(1000);
        let (rows, _, _, found) = failure(kind, &format!("{head}{spread}{end}"));
        assert!((70..90).contains(&rows), "{rows}");
        assert!(found.contains("http.max_row"), "{found}");
    }
}

#[test]
fn an_object_that_a_bracket_closes_is_no_end_of_the_array() {
    for text in ["[{\"a\":1]]", "[{]]", "[{\"a\":1},{\"a\":2]]"] {
        let (_, _, _, found) = failure(Kind::Array, text);
        assert!(found.contains("not valid JSON"), "{text}: {found}");
    }
}

#[test]
fn errors_have_their_true_place() {
    let (rows, line, column, found) =
        failure(Kind::Ndjson, "{\"a\":1}\n\n{\"a\":2}\n  {\"a\":x}\n");
    assert_eq!((rows, line, column), (2, 4, 8), "{found}");
    let (rows, line, column, _) = failure(Kind::Array, "[{\"a\":1},\n {\"a\":2}, {\"a\":x}]");
    assert_eq!((rows, line, column), (2, 2, 16));
    let (rows, line, column, found) = failure(Kind::Array, "[{\"a\":1}\n 5]");
    assert_eq!((rows, line, column), (1, 2, 2), "{found}");
    let (rows, line, _, found) = failure(Kind::Csv, "a,b\n1,\"x\ny\"\n1,2,3\n");
    assert_eq!((rows, line), (1, 4), "{found}");
}

#[test]
fn what_is_cut_off_is_an_error() {
    assert!(
        failure(Kind::Array, "[{\"a\":1},{\"a\"")
            .3
            .contains("middle of an object")
    );
    assert!(failure(Kind::Array, "[{\"a\":1}").3.contains("not closed"));
    assert!(
        failure(Kind::Array, "[{\"a\":1},]")
            .3
            .contains("must be a JSON object")
    );
    assert!(failure(Kind::Array, "[] x").3.contains("behind the end"));
    assert!(
        failure(Kind::Array, "[1]")
            .3
            .contains("must be a JSON object")
    );
    assert!(failure(Kind::Ndjson, "{\"a\":1}\n{\"a\"").3.contains("EOF"));
    assert!(failure(Kind::Csv, "a\n\"x\n1\n").3.contains("not closed"));
    assert!(failure(Kind::Csv, "").3.contains("no header"));
}

#[test]
fn long_rows_and_deep_nesting_are_refused_before_their_end() {
    let long = format!("{{\"a\":\"{}", "x".repeat(MAX_ROW));
    for kind in [Kind::Ndjson, Kind::Csv] {
        let (.., found) = failure(kind, &long);
        assert!(found.contains("http.max_row"), "{found}");
    }
    assert!(
        failure(Kind::Array, &format!("[{long}"))
            .3
            .contains("http.max_row")
    );
    let deep = format!("[{{\"a\":{}", "[".repeat(200));
    assert!(failure(Kind::Array, &deep).3.contains("128"));
}

#[test]
fn a_full_taker_stops_the_reading() {
    struct Two(All);
    impl RowReceiver for Two {
        fn is_full(&self) -> bool {
            self.0.0.len() >= 2
        }
        fn take(&mut self, write: Write) {
            self.0.take(write);
        }
        fn refuse(&mut self, error: RowError) -> Result<(), RowError> {
            self.0.refuse(error)
        }
    }
    let plans = Plans::default();
    let plan = plans.get(Op::Insert, "t", "").unwrap();
    let mut stream = RowStream::ndjson(&plan, MAX_ROW);
    let mut two = Two(All::default());
    let used = stream
        .push(b"{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n", &mut two)
        .unwrap();
    assert_eq!((used, two.0.0.len()), (16, 2));
    assert!(std::sync::Arc::ptr_eq(&two.0.0[0].shape, &two.0.0[1].shape));
}

/// Takes rows, and notes the lines of those that cannot be read.
#[derive(Default)]
struct Lenient(All, Vec<u64>);

impl RowReceiver for Lenient {
    fn is_full(&self) -> bool {
        false
    }
    fn take(&mut self, write: Write) {
        self.0.take(write);
    }
    fn refuse(&mut self, error: RowError) -> Result<(), RowError> {
        self.1.push(error.position.line);
        Ok(())
    }
}

/// The number of rows, the lines that cannot be read, and whether the body was read to its end.
fn leniently(kind: Kind, text: &str) -> (usize, Vec<u64>, bool) {
    let plans = Plans::default();
    let plan = plans.get(Op::Insert, "t", "").unwrap();
    let mut stream = match kind {
        Kind::Ndjson => RowStream::ndjson(&plan, MAX_ROW),
        Kind::Array => RowStream::array(&plan, MAX_ROW),
        Kind::Csv => RowStream::csv(&plan, &plan.options.csv, MAX_ROW),
    };
    let mut out = Lenient::default();
    let read = stream
        .push(text.as_bytes(), &mut out)
        .and_then(|_| stream.finish(&mut out));
    (out.0.0.len(), out.1, read.is_ok())
}

#[test]
fn a_line_that_cannot_be_read_is_no_end_of_the_others() {
    let ndjson = "{\"a\":1}\nnonsense\n{\"a\":2,\"a\":3}\n{\"a\":4}\n[1]\n{\"a\":5}\n{\"a\":";
    let read = leniently(Kind::Ndjson, ndjson);
    assert_eq!(read, (3, vec![2, 3, 5, 7], true));
    let read = leniently(Kind::Csv, "a,b\n1,2\n3\n4,5,6\n7,8\n");
    assert_eq!(read, (2, vec![3, 4], true));
    // What is no row by itself ends the body: a header, an array, a row past the limit.
    let read = leniently(Kind::Csv, "a,a\n1,2\n");
    assert_eq!(read, (0, vec![], false));
    let read = leniently(Kind::Array, "[{\"a\":1},{\"a\":x},{\"a\":2}]");
    assert_eq!(read, (1, vec![], false));
    let long = format!("{{\"a\":1}}\n{{\"a\":\"{}\"}}\n", "x".repeat(MAX_ROW));
    let read = leniently(Kind::Ndjson, &long);
    assert_eq!(read, (1, vec![], false));
}

/// Cuts a text at arbitrary bytes.
fn pieces(text: &[u8], cuts: &[prop::sample::Index]) -> Vec<Vec<u8>> {
    let mut at: Vec<usize> = cuts.iter().map(|c| c.index(text.len() + 1)).collect();
    at.extend([0, text.len()]);
    at.sort_unstable();
    at.windows(2).map(|w| text[w[0]..w[1]].to_vec()).collect()
}

fn same_whatever_the_pieces(kind: Kind, text: &[u8], cuts: &[prop::sample::Index]) {
    let pieces = pieces(text, cuts);
    let pieces = pieces.iter().filter(|p| !p.is_empty()).map(Vec::as_slice);
    assert_eq!(read(kind, pieces), read(kind, [text]));
}

proptest! {
    #[test]
    fn ndjson_in_any_pieces(
        text in r#"(([{]("[ab]":(1|"[a\\"é}\]]{0,3}"|null),?){0,2}[}]?)?\r?\n?){0,5}"#,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        same_whatever_the_pieces(Kind::Ndjson, text.as_bytes(), &cuts);
    }

    #[test]
    fn arrays_in_any_pieces(
        text in r#"\[? ?([{]("[ab]":(1|"[a\\"é}\]]{0,3}"|\[1\]),?){0,2}[}]?[, \n]?){0,4}\]?"#,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        same_whatever_the_pieces(Kind::Array, text.as_bytes(), &cuts);
    }

    #[test]
    fn csv_in_any_pieces(
        text in "a,b\r?\n([xé\",\n\r]{0,8}\n){0,4}[x\",]{0,3}",
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        same_whatever_the_pieces(Kind::Csv, text.as_bytes(), &cuts);
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        kind in prop::sample::select(vec![Kind::Ndjson, Kind::Array, Kind::Csv]),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        same_whatever_the_pieces(kind, &bytes, &cuts);
    }

    /// An array that serde_json reads gives one row for each of its objects.
    #[test]
    fn whole_arrays(names in prop::collection::vec("[a-z\"\\\\{}\\[\\], ]{1,5}", 0..6)) {
        let objects: Vec<_> = names.iter().map(|n| serde_json::json!({n.as_str(): [n, {"x": n}]})).collect();
        let text = serde_json::to_string_pretty(&objects).unwrap();
        let (rows, error) = one(Kind::Array, &text);
        prop_assert_eq!(error, None);
        let read: Vec<String> = rows.into_iter().map(|(columns, _)| columns[0].clone()).collect();
        prop_assert_eq!(read, names);
    }
}

#[test]
fn what_a_line_lacks_is_told_of_that_line() {
    for end in ["\n", "\r\n", " \n", ""] {
        let text = format!("{{\"a\":1}}{end}\n{{\"a\":{end}");
        let (rows, line, column, found) = failure(Kind::Ndjson, &text);
        let broken = 2 + u64::from(end.contains('\n'));
        assert_eq!((rows, line, column), (1, broken, 5), "{end:?}: {found}");
    }
}
