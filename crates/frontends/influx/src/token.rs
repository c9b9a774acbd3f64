//! The token of a request in InfluxDB's forms: `Authorization: Token TOKEN`, the password of Basic,
//! and the parameter `p`.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::request::Parts;
use windrow_http::extension::{decode, pairs};

/// Returns the token; `None` if the request shows it in none of these forms.
pub(crate) fn of(head: &Parts) -> Option<Cow<'_, [u8]>> {
    if let Some(value) = head.headers.get(AUTHORIZATION) {
        let value = value.as_bytes();
        let scheme_end = value.iter().position(|b| *b == b' ')?;
        let (scheme, rest) = value.split_at(scheme_end);
        return match scheme {
            _ if scheme.eq_ignore_ascii_case(b"token") => Some(rest.trim_ascii().into()),
            _ if scheme.eq_ignore_ascii_case(b"basic") => password(rest.trim_ascii()),
            _ => None,
        };
    }
    let (_, raw) = pairs(head.uri.query()?).find(|(name, _)| *name == "p")?;
    Some(decode(raw).ok()?.into_owned().into_bytes().into())
}

fn password(encoded: &[u8]) -> Option<Cow<'static, [u8]>> {
    let pair = STANDARD.decode(encoded).ok()?;
    let colon = pair.iter().position(|b| *b == b':')?;
    Some(pair.get(colon + 1..)?.to_vec().into())
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn shown(path: &str, authorization: Option<&str>) -> Option<String> {
        let mut request = Request::post(path);
        if let Some(value) = authorization {
            request = request.header(AUTHORIZATION, value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        of(&head).map(|token| String::from_utf8(token.into_owned()).unwrap())
    }

    #[test]
    fn a_token_is_shown_in_four_forms() {
        assert_eq!(shown("/write", Some("Token abc")).unwrap(), "abc");
        assert_eq!(shown("/write", Some("basic dTphOmI=")).unwrap(), "a:b");
        assert_eq!(shown("/write?db=x&u=me&p=a%2Bb", None).unwrap(), "a+b");
        for none in ["Bearer abc", "Basic !", "Basic dTo=x", "Token"] {
            assert_eq!(shown("/write?p=x", Some(none)), None, "{none}");
        }
        assert_eq!(shown("/write", None), None);
    }
}
