//! `/query`: the statements that clients send before they write. Windrow has one database, which is
//! there already, so `CREATE DATABASE` does nothing.

use http::StatusCode;
use windrow_http::extension::{
    Feed, Refusal, RequestContext, WholeAnswer, decode, pairs, whole_json,
};

use crate::answer;

const CREATED: &str = r#"{"results":[{"statement_id":0}]}"#;
const NO_DATABASES: &str =
    r#"{"results":[{"statement_id":0,"series":[{"name":"databases","columns":["name"]}]}]}"#;

/// Answers a statement, which stands in the parameter `q` of the URL or of a form.
pub(crate) async fn run(
    context: &RequestContext<'_>,
    feed: &mut Feed<'_>,
) -> Result<WholeAnswer, Refusal> {
    let app = context.app;
    let whole = feed.all(app.body_limit(), app.budget()).await?;
    let form = String::from_utf8_lossy(&whole.bytes);
    let mut parameters = pairs(context.query()).chain(pairs(&form));
    let statement = match parameters.find(|(name, _)| *name == "q") {
        Some((_, raw)) => decode(raw)?,
        None => {
            return Ok(answer::error(
                StatusCode::BAD_REQUEST,
                "missing required parameter \"q\"",
            ));
        }
    };
    let mut words = statement.split_ascii_whitespace();
    let words =
        [words.next(), words.next()].map(|word| word.unwrap_or_default().to_ascii_lowercase());
    Ok(match [&*words[0], words[1].trim_end_matches(';')] {
        ["create", "database"] => whole_json(StatusCode::OK, CREATED),
        ["show", "databases"] => whole_json(StatusCode::OK, NO_DATABASES),
        _ => answer::error(
            StatusCode::BAD_REQUEST,
            "Windrow answers CREATE DATABASE and SHOW DATABASES here; read rows with GET /v1/tables/NAME/rows, or in SQL",
        ),
    })
}
