//! A file means the same whatever reads it: here, or the database that its records are passed on
//! to.

use crate::support::Db;

/// Pieces of records, as a hand that is none too careful would write them.
const PIECES: [&str; 16] = [
    "a,b\n",
    "a,b\n",
    "c,\"d\"\n",
    "c,\"d\"\r\n",
    "e,\n",
    ",\"\"\n",
    "f,\"g\"\"h\"\n",
    "i\"j,k\"l,m\n",
    "n,\"o\np\"\n",
    "q,\"r\n\\.\n\"\n",
    "\\.\n",
    "s\n",
    "t,u,v\n",
    "\n",
    "w,\\N\\t\\\n",
    "x,é😀\n",
];

/// So many records, each with its number in it where it has two fields.
fn messy(seed: u64, records: usize, tame: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    let mut text = b"k,v\n".to_vec();
    for record in 0..records {
        let piece = if next(tame) > 0 {
            "a,b\n"
        } else {
            PIECES[next(PIECES.len())]
        };
        text.extend(piece.replacen(',', &format!("{record},"), 1).bytes());
        match next(tame * 40) {
            0 => text.extend(b"y,\xff\n"),
            1 => text.extend(b"z,\0\n"),
            2 => text.extend(b"1,\r2\n"),
            _ => {}
        }
    }
    text
}

/// What is in the table, and what was refused.
fn loaded(db: &Db, file: &[u8], hex: &str) -> (Vec<String>, Vec<String>, Option<i32>) {
    db.exec("create table t (k text, v text)");
    let name = db.file("messy.csv", file);
    let said = db.load(&[
        &name,
        "-t",
        "t",
        "--batch-rows",
        "40",
        "--rejects",
        "bad.csv",
    ]);
    assert!(!said.text.contains("error"), "{}", said.text);
    let sql = hex.replace('?', "k") + " || '|' || " + &hex.replace('?', "v");
    let rows = db.exec(&format!("select {sql} from t"));
    let mut rows: Vec<String> = rows.lines().map(str::to_lowercase).collect();
    rows.sort_unstable();
    let bad = match db.path("bad.csv").exists() {
        true => db.text("bad.csv"),
        false => String::new(),
    };
    let mut bad: Vec<String> = bad.split('\n').map(str::to_owned).collect();
    bad.sort_unstable();
    (rows, bad, said.code)
}

#[test]
fn by_whom_a_file_is_read_makes_no_difference() {
    for (seed, tame) in [(1, 1), (2, 10), (3, 300), (4, 100_000)] {
        let file = messy(seed, 3000, tame);
        let there = loaded(
            &Db::postgres(),
            &file,
            "coalesce(encode(convert_to(?, 'UTF8'), 'hex'), 'null')",
        );
        let here = loaded(
            &Db::sqlite(),
            &file,
            "case when ? is null then 'null' else hex(?) end",
        );
        assert!(there.0.len() > 1000, "{}", there.0.len());
        assert_eq!(there.2, here.2, "seed {seed}");
        for (there, here) in [(&there.0, &here.0), (&there.1, &here.1)] {
            let differ = there.iter().zip(here).find(|(there, here)| there != here);
            assert_eq!(differ, None, "seed {seed}");
            assert_eq!(there.len(), here.len(), "seed {seed}");
        }
    }
}
