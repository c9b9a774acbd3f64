use proptest::prelude::*;

use super::*;

fn parse(text: &[u8]) -> Result<Vec<EnvelopePart>, String> {
    let text = Bytes::copy_from_slice(text);
    split(&text, "--X", 10).map_err(|malformed| malformed.message.into())
}

fn texts(text: &str) -> Vec<String> {
    let pieces = parse(text.as_bytes()).unwrap();
    let text = |piece: EnvelopePart| String::from_utf8(piece.text.to_vec()).unwrap();
    pieces.into_iter().map(text).collect()
}

const KIND: &str = "Content-Type: application/x-arango-batchpart";

#[test]
fn line_ends_preamble_epilogue_and_padding() {
    let text = format!(
        "before\r\n--Xy\r\n --X\r\n--X \t\r\n{KIND}\r\nContent-Id: 1\r\n\r\nGET /a\r\n\r\n--X\ncontent-type:application/http; msgtype=request\n\nGET /b\n--X--  \r\n--X\r\nbehind"
    );
    let pieces = parse(text.as_bytes()).unwrap();
    assert_eq!(pieces.len(), 2);
    assert_eq!(
        (pieces[0].kind, pieces[0].id.as_deref(), &pieces[0].text[..]),
        (PartKind::Arango, Some(&b"1"[..]), &b"GET /a\r\n"[..])
    );
    assert_eq!(
        (pieces[1].kind, pieces[1].id.as_deref(), &pieces[1].text[..]),
        (PartKind::Http, None, &b"GET /b"[..])
    );
}

#[test]
fn a_part_that_says_its_length_may_hold_boundary_lines() {
    let body = "{\r\n--X--\r\n--X\r\n}";
    let length = body.len();
    let inner = format!("POST /a HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{body}");
    let text = format!("--X\r\n{KIND}\r\n\r\n{inner}\r\n\r\n--X--");
    assert_eq!(texts(&text), [inner]);
    let without = format!("POST /a HTTP/1.1\r\n\r\n{body}");
    let text = format!(
        "--X\r\n{KIND}\r\nContent-Length: {}\r\n\r\n{without}\n--X--",
        without.len()
    );
    assert_eq!(texts(&text), [without]);
    let text = format!("--X\n{KIND}\n\nPOST /a\nContent-Length: 0\n\n--X--");
    assert_eq!(texts(&text), ["POST /a\nContent-Length: 0\n\n"]);
}

#[test]
fn folded_ids_are_one() {
    let text = format!("--X\r\n{KIND}\r\nContent-ID: <a +\r\n\t b>\r\n\r\nGET /\r\n--X--");
    let pieces = parse(text.as_bytes()).unwrap();
    assert_eq!(pieces[0].id.as_deref(), Some(&b"<a + b>"[..]));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let part = format!("--X\r\n{KIND}\r\n\r\nGET /\r\n");
    let long =
        format!("{part}--X\r\n{KIND}\r\n\r\nPOST /\r\nContent-Length: 90\r\n\r\nabc\r\n--X--");
    let short =
        format!("{part}--X\r\n{KIND}\r\n\r\nPOST /\r\nContent-Length: 2\r\n\r\nabc\r\n--X--");
    for (text, wanted) in [
        ("", "the envelope, line 1: no boundary line (--X) was found"),
        ("{\"a\":1}", "no boundary line (--X) was found"),
        ("--X--\r\n", "line 1: the envelope has no parts"),
        (
            "--X\r\n",
            "part 1 of the envelope, line 2: the envelope ends within the headers",
        ),
        (
            &part,
            "part 1 of the envelope, line 5: the closing boundary line is missing",
        ),
        (
            &format!("{part}--X\r\n"),
            "part 2 of the envelope, line 6: the envelope ends within the headers",
        ),
        (
            "--X\r\n\r\nGET /\r\n--X--",
            "part 1 of the envelope, line 3: the part has no Content-Type",
        ),
        (
            "--X\r\ncontent-type: text/plain\r\n\r\nGET /\r\n--X--",
            "line 2: the part's Content-Type is \"text/plain\"",
        ),
        (
            "--X\r\nGET / HTTP/1.1\r\n\r\n--X--",
            "line 2: a header of the part has no colon",
        ),
        (
            &format!("--X\r\n{KIND}\r\n--X--"),
            "line 3: the part ends within its headers",
        ),
        (
            &format!("--X\r\n{KIND}\r\ncontent-transfer-encoding: base64\r\n\r\nGET /\r\n--X--"),
            "line 3: its Content-Transfer-Encoding",
        ),
        (
            &format!("--X\r\n{KIND}\r\ncontent-length: x\r\n\r\nGET /\r\n--X--"),
            "line 3: its Content-Length is not a number",
        ),
        (
            &long,
            "part 2 of the envelope, line 8: its Content-Length goes beyond the end of the envelope",
        ),
        (
            &short,
            "no boundary line follows where its Content-Length says",
        ),
        (
            &part.repeat(11),
            "more than 10 parts (http.max_atomic_rows)",
        ),
    ] {
        let message = parse(text.as_bytes()).unwrap_err();
        assert!(message.contains(wanted), "{text:?}: {message}");
    }
}

/// Bodies with lines that look like boundaries.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(&b"--X"[..]),
        Just(&b"--"[..]),
        Just(&b"\r\n"[..]),
        Just(&b"\n"[..]),
        Just(&b"--X--"[..]),
        Just(&b"X"[..]),
        Just(&b" "[..]),
        Just(&b"\0\xff"[..]),
        Just(&b"{\"a\": 1}"[..]),
    ];
    prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn bodies_of_a_told_length_survive(bodies in prop::collection::vec((body(), any::<bool>()), 1..6)) {
        let mut text = Vec::new();
        let mut wanted = Vec::new();
        for (body, crlf) in &bodies {
            let end: &[u8] = if *crlf { b"\r\n" } else { b"\n" };
            let head = format!("POST /a HTTP/1.1\r\nContent-Length: {}\r\n\r\n", body.len());
            text.extend_from_slice(&[b"--X", end, KIND.as_bytes(), end, end, head.as_bytes(), body, end].concat());
            wanted.push([head.as_bytes(), body].concat());
        }
        text.extend_from_slice(b"--X--");
        let pieces = parse(&text).unwrap();
        let got: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.text.to_vec()).collect();
        prop_assert_eq!(got, wanted);
    }

    /// A body without a length ends at the first whole boundary line.
    #[test]
    fn look_alikes_are_no_boundaries(mut body in body()) {
        let line = |line: &[u8]| {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            line.strip_prefix(b"--X").is_some_and(|rest| {
                rest.strip_prefix(b"--").unwrap_or(rest).trim_ascii().is_empty()
            })
        };
        if body.split(|b| *b == b'\n').any(line) {
            body.retain(|b| *b != b'\n');
            body.insert(0, b'y');
        }
        let head = format!("--X\r\n{KIND}\r\n\r\nPOST /a HTTP/1.1\r\n\r\n");
        let text = [head.as_bytes(), &body, b"\r\n--X--"].concat();
        let pieces = parse(&text).unwrap();
        let wanted = [&b"POST /a HTTP/1.1\r\n\r\n"[..], &body].concat();
        prop_assert_eq!(&pieces[0].text[..], &wanted[..]);
    }

    #[test]
    fn nothing_makes_it_panic(text in prop::collection::vec(body(), 0..10), kind in any::<bool>()) {
        let kind = if kind { format!("--X\r\n{KIND}\r\n\r\n").into_bytes() } else { Vec::new() };
        drop(parse(&[kind, text.concat()].concat()));
    }
}
