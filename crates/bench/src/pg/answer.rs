//! Finds the end of an answer, and what it says, without taking it apart.

use anyhow::{Result, bail};

use super::report::CallOutcome;

/// The last message of an answer outside of a transaction: ReadyForQuery.
pub const READY: &[u8] = b"Z\0\0\0\x05I";

/// Returns the outcome, if the answer is whole up to its ReadyForQuery, which must be the last that
/// came: a client has one call under way.
///
/// # Errors
/// These are no messages.
pub fn parse(mut input: &[u8]) -> Result<Option<CallOutcome>> {
    let mut outcome = CallOutcome::Success;
    while let Some((head, rest)) = input.split_first_chunk::<5>() {
        let [tag, length @ ..] = *head;
        let length = usize::try_from(u32::from_be_bytes(length))?;
        if length < 4 {
            bail!("a message of {length} bytes");
        }
        let Some((body, behind)) = rest.split_at_checked(length - 4) else {
            return Ok(None);
        };
        match tag {
            b'E' if outcome == CallOutcome::Success => outcome = CallOutcome::Error(sqlstate(body)),
            b'Z' => return Ok(Some(outcome)),
            _ => {}
        }
        input = behind;
    }
    Ok(None)
}

/// Returns the first value of the last row of a whole answer.
pub fn first_value(mut input: &[u8]) -> Option<&[u8]> {
    let mut value = None;
    while let Some(([tag, length @ ..], rest)) = input.split_first_chunk::<5>() {
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (body, behind) = rest.split_at_checked(length.checked_sub(4)?)?;
        if *tag == b'D' {
            // The number of columns, the length of the first one, and that.
            let length = body.get(2..)?.first_chunk()?;
            let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
            value = body.get(6..)?.get(..length);
        }
        input = behind;
    }
    value
}

/// The field `C` of an ErrorResponse.
fn sqlstate(body: &[u8]) -> [u8; 5] {
    let fields = body.split(|byte| *byte == 0);
    let mut codes = fields.filter_map(|field| field.strip_prefix(b"C")?.try_into().ok());
    codes.next().unwrap_or(*b"?????")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_at_ready_for_query() {
        let ready = b"Z\0\0\0\x05I";
        let good = [&b"2\0\0\0\x04C\0\0\0\x0fINSERT 0 1\0"[..], ready].concat();
        let bad = [&b"E\0\0\0\x16SERROR\0C23505\0Mx\0\0"[..], ready].concat();
        assert_eq!(parse(&good).unwrap(), Some(CallOutcome::Success));
        assert_eq!(parse(&good[..good.len() - 1]).unwrap(), None);
        assert_eq!(parse(&bad).unwrap(), Some(CallOutcome::Error(*b"23505")));
        assert!(parse(b"Z\0\0\0\x01I").is_err());
        let row = b"D\0\0\0\x0d\0\x01\0\0\0\x0342!";
        assert_eq!(first_value(&[&row[..], &good].concat()), Some(&b"42!"[..]));
        assert_eq!(first_value(&good), None);
    }
}
