//! Sends requests, and reads what each unit was told.

use std::time::Instant;

use futures_util::future::join_all;
use serde_json::Value as Json;

use super::program::{Case, Catalog, Request};
use crate::oracle::Answered;
use crate::record::{Line, Told};

/// A client of a program.
#[derive(Clone, Debug)]
pub struct Caller {
    base: String,
    client: reqwest::Client,
}

impl Caller {
    /// Of the program that listens there.
    pub fn of(base: String) -> Self {
        let client = reqwest::Client::builder()
            .pool_max_idle_per_host(64)
            .build();
        Self {
            base,
            client: client.unwrap(),
        }
    }

    /// All sources at once.
    pub async fn play<C: Catalog>(&self, case: &Case<C>, name: &str) -> Vec<Vec<Answered>> {
        let sources = 0..case.sources.len();
        let all = sources.map(async |source| {
            let mut answers = Vec::new();
            for (request, units) in case.requests(name, source) {
                let sent = Instant::now();
                let told = self.send(&request, name, units).await;
                let answered = Instant::now();
                let each = told.into_iter();
                answers.extend(each.map(|told| Answered {
                    sent,
                    answered,
                    told,
                }));
            }
            answers
        });
        join_all(all).await
    }

    /// Sends a request that holds so many units.
    pub async fn send(&self, request: &Request, name: &str, units: usize) -> Vec<Told> {
        let url = format!("{}{}", self.base, request.path);
        let post = self.client.post(url).header("content-type", request.kind);
        let answer = post.body(request.body.clone()).send().await.unwrap();
        let text = without_databases(&answer.text().await.unwrap().replace(name, "S"));
        let json: Json = serde_json::from_str(&text).unwrap_or(Json::String(text));
        let results = json["results"].as_array().filter(|all| all.len() == units);
        match results {
            // Several results of one unit: it is atomic.
            Some(results) => results.iter().map(told).collect(),
            None if units == 1 => vec![told(&json)],
            None => panic!("{units} units were answered {json}"),
        }
    }
}

/// Some errors name the database, and the judge has one of its own.
fn without_databases(text: &str) -> String {
    let mut parts = text.split("`windrow_");
    let mut rest = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        rest.push_str("`DATABASE");
        rest.push_str(part.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
    }
    rest
}

/// What a result tells; a returned row is one, whose columns are compared as those of tables.
fn told(result: &Json) -> Told {
    let mut rest = result.clone();
    let mut rows = Vec::new();
    take(&mut rest, &mut rows);
    let mut told = vec![Line::Text(rest.to_string())];
    told.extend(rows);
    told
}

fn take(json: &mut Json, rows: &mut Vec<Line>) {
    match json {
        Json::Array(all) => all.iter_mut().for_each(|one| take(one, rows)),
        Json::Object(fields) => {
            for name in ["returned", "row"] {
                if let Some(row) = fields.remove(name) {
                    rows.extend(all_rows(&row));
                }
            }
            // It may hold values that differ in each run.
            let detail = fields.get("detail").and_then(Json::as_str);
            if detail.is_some_and(|detail| detail.starts_with("Failing row contains")) {
                fields.remove("detail");
            }
            fields.values_mut().for_each(|field| take(field, rows));
        }
        _ => {}
    }
}

fn all_rows(row: &Json) -> Vec<Line> {
    match row {
        Json::Array(all) => all.iter().flat_map(all_rows).collect(),
        Json::Object(fields) => {
            let cell = |(name, value): (&String, &Json)| {
                let text = match value {
                    Json::Null => None,
                    Json::String(text) => Some(text.clone()),
                    other => Some(other.to_string()),
                };
                (name.clone(), text)
            };
            vec![Line::Row(fields.iter().map(cell).collect())]
        }
        other => vec![Line::Text(other.to_string())],
    }
}
