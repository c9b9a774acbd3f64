use super::super::{Origin, Reason, Reject};
use super::*;

fn origin(load: &str) -> Origin {
    Origin {
        file: "a.csv".into(),
        load: Some(load.into()),
    }
}

fn write(pair: &mut RejectFiles, load: &str, record: u64, raw: &[u8]) {
    let reject = Reject {
        file: "a.csv",
        line: record + 2,
        record,
        raw,
        reason: Reason::Form("has 2 fields, not 3"),
        column: None,
        value: None,
    };
    pair.write(&origin(load), &reject).unwrap();
    pair.settle(true).unwrap();
}

fn text(path: &Path) -> String {
    String::from_utf8(std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn rows_can_be_loaded_again_and_reasons_are_beside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.csv");
    let mut pair = RejectFiles::open(&path, false).unwrap();
    pair.header(Some(b"a,b,c")).unwrap();
    write(&mut pair, "one", 5, b"1,2");
    write(&mut pair, "one", 6, b"\"x\ny\",2");
    assert_eq!(text(&path), "a,b,c\n1,2\n\"x\ny\",2\n");
    let reasons = text(&folder.path().join("r.csv.reasons"));
    let lines: Vec<serde_json::Value> = reasons
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(
        (&lines[0]["line"], &lines[0]["code"]),
        (&7.into(), &"22P04".into())
    );
    assert_eq!(lines[1]["ends_at"], 18);
}

#[test]
fn a_later_run_goes_on_behind_the_last_whole_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.csv");
    let reasons = folder.path().join("r.csv.reasons");
    let mut pair = RejectFiles::open(&path, true).unwrap();
    pair.header(Some(b"a,b,c")).unwrap();
    for record in [1, 2, 9] {
        write(&mut pair, "one", record, b"1,2");
    }
    drop(pair);
    let whole = (text(&path), text(&reasons));
    // A crash in the middle of a row, and one in the middle of a reason.
    std::fs::write(&path, format!("{}7,", whole.0)).unwrap();
    std::fs::write(&reasons, format!("{}{{\"file\":", whole.1)).unwrap();
    let mut pair = RejectFiles::open(&path, true).unwrap();
    let spans = [Span { first: 1, end: 3 }, Span { first: 9, end: 10 }];
    assert_eq!(
        (pair.before("one"), pair.before("two")),
        (spans.to_vec(), vec![])
    );
    assert_eq!((text(&path), text(&reasons)), whole);
    assert!(pair.header(Some(b"x")).is_err());
    pair.header(Some(b"a,b,c")).unwrap();
    write(&mut pair, "two", 0, b"3,4");
    assert_eq!(text(&path), format!("{}3,4\n", whole.0));
}

#[test]
fn rows_that_somebody_still_needs_are_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.csv");
    let mut pair = RejectFiles::open(&path, false).unwrap();
    write(&mut pair, "one", 0, b"1,2");
    drop(pair);
    assert!(
        RejectFiles::open(&path, false)
            .unwrap_err()
            .to_string()
            .contains("is there already")
    );
    std::fs::write(&path, "1,9\n").unwrap();
    assert!(
        RejectFiles::open(&path, true)
            .unwrap_err()
            .to_string()
            .contains("move both away")
    );
}

#[test]
fn files_that_hold_nothing_are_taken_away() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.csv");
    RejectFiles::open(&path, false).unwrap().close();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let missing = folder.path().join("no/r.csv");
    assert!(
        RejectFiles::open(&missing, false)
            .unwrap_err()
            .to_string()
            .contains("r.csv")
    );
}
