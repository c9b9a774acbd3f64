//! A file means the same whatever reads it: here, or the database that its records are passed on
//! to. A plain reader of the same rules says what it means.

use crate::support::Db;

/// Pieces of records, as a hand that is none too careful would write them.
const PIECES: [&str; 28] = [
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
    "12\" by ,3\" y\n",
    "12\" by 3\",\r\n",
    "{\"a\":\"x\"},f\n",
    "g, \"h\"\n",
    "\"i\"j,k\n",
    "l,\"m\" \n",
    "l,\"m\" \"n\"\r\n",
    "\"o\"\"p\"q,\"r\"\n",
    "\"\"\"s\"\"\",\"\"\"\"\n",
    "\"C:\\t\\\",\"u\\\"\n",
    "\\N,v\n",
    "\"w\",x\\\"y\\\\\n",
];

/// Builds records, each with its number in it where it has two fields. The first hundred are
/// plain.
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
        let piece = if record < 100 || next(tame) > 0 {
            "a,b\n"
        } else {
            PIECES[next(PIECES.len())]
        };
        text.extend(piece.replacen(',', &format!("{record},"), 1).bytes());
        if record < 100 {
            continue;
        }
        match next(tame * 40) {
            0 => text.extend(b"y,\xff\n"),
            1 => text.extend(b"z,\0\n"),
            2 => text.extend(b"1,\r2\n"),
            _ => {}
        }
    }
    text
}

/// Returns the content of the table as hexadecimal digits, and the records that were refused.
type Outcome = (Vec<String>, Vec<String>);

fn sorted(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<String> = lines.collect();
    lines.sort_unstable();
    lines
}

/// A record as a plain reader finds it: its fields, `None` where they have no value.
#[derive(Default)]
struct Plain {
    fields: Vec<Option<Vec<u8>>>,
    next: usize,
    end: usize,
    is_bad: bool,
}

impl Plain {
    fn read(text: &[u8], from: usize) -> Self {
        let mut record = Self {
            next: from,
            ..Self::default()
        };
        while !record.field(text) {}
        record.is_bad |= record.fields.len() != 2;
        let raw = &text[from..record.end];
        record.is_bad |= raw.contains(&0) || std::str::from_utf8(raw).is_err();
        record
    }

    /// Reads a field; true if it is the last one.
    fn field(&mut self, text: &[u8]) -> bool {
        let quoted = text.get(self.next) == Some(&b'"');
        let mut value = Vec::new();
        if quoted {
            self.next += 1;
            loop {
                match &text[self.next..] {
                    [b'"', b'"', ..] => {
                        value.push(b'"');
                        self.next += 2;
                    }
                    [b'"', ..] => break self.next += 1,
                    [other, ..] => {
                        value.push(*other);
                        self.next += 1;
                    }
                    [] => unreachable!("each quote is closed"),
                }
            }
        }
        let begin = self.next;
        while !matches!(text[self.next], b',' | b'\n') {
            self.next += 1;
        }
        let is_last = text[self.next] == b'\n';
        let mut behind = &text[begin..self.next];
        if is_last {
            behind = behind.strip_suffix(b"\r").unwrap_or(behind);
        }
        self.end = begin + behind.len();
        self.next += 1;
        self.is_bad |= match quoted {
            true => !behind.is_empty(),
            false => behind.contains(&b'\r') || behind == b"\\N",
        };
        value.extend(behind);
        self.fields
            .push((quoted || !value.is_empty()).then_some(value));
        is_last
    }
}

fn expected(text: &[u8]) -> Outcome {
    let (mut good, mut bad, mut from) = (Vec::new(), b"k,v\n".to_vec(), 4);
    while from < text.len() {
        let record = Plain::read(text, from);
        let raw = &text[from..record.end];
        from = record.next;
        if raw.is_empty() {
            continue;
        }
        if record.is_bad {
            bad.extend([raw, b"\n"].concat());
            continue;
        }
        let hex = |value: &Option<Vec<u8>>| match value {
            None => "null".to_owned(),
            Some(value) => value.iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        let fields: Vec<String> = record.fields.iter().map(hex).collect();
        good.push(fields.join("|"));
    }
    let bad = String::from_utf8_lossy(&bad).into_owned();
    let bad = sorted(bad.split('\n').map(str::to_owned));
    (sorted(good.into_iter()), bad)
}

fn loaded(db: &Db, file: &[u8], hex: &str, way: &[&str]) -> Outcome {
    db.exec("create table t (k text, v text)");
    let name = db.file("messy.csv", file);
    std::fs::remove_file(db.path("bad.csv")).ok();
    std::fs::remove_file(db.path("bad.csv.reasons")).ok();
    let arguments = [&[&*name, "-t", "t", "--rejects", "bad.csv"], way].concat();
    let said = db.load(&arguments);
    assert!(matches!(said.code, Some(0 | 3)), "{}", said.text);
    let (k, v) = (hex.replace('?', "k"), hex.replace('?', "v"));
    let rows = db.exec(&format!("select {k}, {v} from t"));
    let rows = sorted(rows.lines().map(str::to_lowercase));
    let bad = match db.path("bad.csv").exists() {
        true => db.text("bad.csv"),
        false => "k,v\n".to_owned(),
    };
    db.exec("drop table t");
    (rows, sorted(bad.split('\n').map(str::to_owned)))
}

/// As the file stands, taken apart here, row by row where the database updates.
const WAYS: [&[&str]; 3] = [
    &["--batch-rows", "40"],
    &["--null", "", "--null", "never", "--batch-rows", "300"],
    &["--escape", "\""],
];

fn alike(db: &Db, hex: &str) {
    for (seed, tame, way) in [
        (1, 1, 0),
        (2, 10, 0),
        (3, 300, 0),
        (4, 3, 1),
        (5, 100_000, 0),
    ] {
        let file = messy(seed, 2000, tame);
        let found = loaded(db, &file, hex, WAYS[way]);
        let expected = expected(&file);
        assert!(expected.0.len() > 700, "{}", expected.0.len());
        for (found, expected) in [(&found.0, &expected.0), (&found.1, &expected.1)] {
            let mut both = found.iter().zip(expected);
            assert_eq!(both.find(|(a, b)| a != b), None, "seed {seed}");
            assert_eq!(found.len(), expected.len(), "seed {seed}");
        }
    }
}

#[test]
fn postgres() {
    let hex = "coalesce(encode(convert_to(?, 'UTF8'), 'hex'), 'null')";
    alike(&Db::postgres(), hex);
}

#[test]
fn mariadb() {
    alike(&Db::mariadb(), "coalesce(hex(?), 'null')");
}

#[test]
fn sqlite() {
    alike(
        &Db::sqlite(),
        "case when ? is null then 'null' else hex(?) end",
    );
}
