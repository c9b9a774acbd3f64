//! Requests answered, in ArangoDB's words.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::store::{Collection, Collections, Document, DocumentError, PRIMARY, is_key, taken};
use crate::web::{Reply, Request};

fn failed(status: u16, number: u16, message: &str) -> Reply {
    let message = Value::String(message.to_owned());
    let body = format!(
        "{{\"code\":{status},\"error\":true,\"errorMessage\":{message},\"errorNum\":{number}}}"
    );
    Reply::json(status, body)
}

/// Answers a request.
pub(super) fn answer(store: &mut Collections, request: &Request) -> Reply {
    let (path, query) = request
        .target
        .split_once('?')
        .unwrap_or((&request.target, ""));
    if path == "/_open/auth" {
        return token(store, request);
    }
    if !is_allowed(store, request) {
        return failed(401, 401, "not authorized to execute this request");
    }
    let Some((database, path)) = path
        .strip_prefix("/_db/")
        .and_then(|path| path.split_once('/'))
    else {
        return failed(404, 404, "unknown path");
    };
    if !matches!(database, "_system" | "shop") {
        return failed(404, 1228, "database not found");
    }
    match (request.method.as_str(), path) {
        ("GET", "_api/version") => Reply::json(
            200,
            r#"{"server":"arango","license":"community","version":"3.12.4"}"#,
        ),
        ("POST", "_api/collection") => create(store, &request.body),
        (method, path) => match path.strip_prefix("_api/document/") {
            Some(collection) => documents(store, method, &decode(collection), query, &request.body),
            None => failed(404, 404, "unknown path"),
        },
    }
}

fn token(store: &Collections, request: &Request) -> Reply {
    let Some((user, password)) = &store.login else {
        return failed(404, 404, "unknown path");
    };
    let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
    if body.get("username") == Some(&json!(user)) && body.get("password") == Some(&json!(password))
    {
        return Reply::json(200, format!("{{\"jwt\":\"token.{}\"}}", store.tokens));
    }
    failed(401, 401, "Wrong credentials")
}

fn is_allowed(store: &Collections, request: &Request) -> bool {
    let Some((user, password)) = &store.login else {
        return true;
    };
    let shown = request.header("authorization").unwrap_or_default();
    let basic = STANDARD.encode(format!("{user}:{password}"));
    shown == format!("Bearer token.{}", store.tokens) || shown == format!("Basic {basic}")
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(b) = rest.next() {
        let digit = |b: Option<u8>| b.and_then(|b| char::from(b).to_digit(16));
        bytes.push(match b {
            b'%' => match (digit(rest.next()), digit(rest.next())) {
                (Some(high), Some(low)) => u8::try_from(high * 16 + low).unwrap_or_default(),
                _ => b'%',
            },
            other => other,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn create(store: &mut Collections, body: &str) -> Reply {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let Some(name) = body.get("name").and_then(Value::as_str) else {
        return failed(400, 1208, "illegal name");
    };
    if store.collections.contains_key(name) {
        return failed(409, 1207, "duplicate name");
    }
    store
        .collections
        .insert(name.to_owned(), Collection::default());
    let name = Value::String(name.to_owned());
    Reply::json(
        200,
        format!(
            "{{\"error\":false,\"code\":200,\"type\":2,\"waitForSync\":false,\"status\":3,\"name\":{name}}}"
        ),
    )
}

fn documents(
    store: &mut Collections,
    method: &str,
    collection: &str,
    query: &str,
    body: &str,
) -> Reply {
    let Ok(Value::Array(entries)) = serde_json::from_str(body) else {
        return failed(400, 600, "VPackError error: Expecting digit");
    };
    let Some(mut found) = store.collections.remove(collection) else {
        return failed(404, 1203, "collection or view not found");
    };
    let mut numbers: BTreeMap<u16, usize> = BTreeMap::new();
    let answers: Vec<Value> = entries
        .iter()
        .map(|entry| {
            let result = match method {
                "PUT" => read(&found, collection, entry),
                _ => write(store, &mut found, (method, collection, query), entry),
            };
            result.unwrap_or_else(|DocumentError(number, message)| {
                *numbers.entry(number).or_default() += 1;
                json!({"error": true, "errorNum": number, "errorMessage": message})
            })
        })
        .collect();
    store.collections.insert(collection.to_owned(), found);
    let mut reply = Reply::json(
        if method == "PUT" { 200 } else { 202 },
        Value::Array(answers).to_string(),
    );
    if !numbers.is_empty() {
        let counts: Vec<String> = numbers
            .iter()
            .map(|(n, count)| format!("{n}:{count}"))
            .collect();
        reply
            .headers
            .push(("X-Arango-Error-Codes".into(), counts.join(",")));
    }
    reply
}

fn key_of(entry: &Value) -> Result<Option<&str>, DocumentError> {
    match entry {
        Value::String(key) => Ok(Some(key)),
        Value::Object(document) => match document.get("_key") {
            None => Ok(None),
            Some(Value::String(key)) if is_key(key) => Ok(Some(key)),
            Some(_) => Err(DocumentError(1221, "illegal document key".to_owned())),
        },
        _ => Err(DocumentError(1227, "invalid document type".to_owned())),
    }
}

fn whole(collection: &str, document: &Document) -> Value {
    let mut whole = document.clone();
    let key = document
        .get("_key")
        .and_then(Value::as_str)
        .unwrap_or_default();
    whole.insert("_id".into(), json!(format!("{collection}/{key}")));
    Value::Object(whole)
}

fn read(found: &Collection, collection: &str, entry: &Value) -> Result<Value, DocumentError> {
    let key =
        key_of(entry)?.ok_or_else(|| DocumentError(1226, "missing document key".to_owned()))?;
    Ok(whole(collection, found.get(key)?))
}

fn write(
    store: &mut Collections,
    found: &mut Collection,
    (method, collection, query): (&str, &str, &str),
    entry: &Value,
) -> Result<Value, DocumentError> {
    let named = key_of(entry)?;
    store.revision += 1;
    let revision = format!("_r{:09}", store.revision);
    let key = match (named, method) {
        (Some(key), _) => key.to_owned(),
        (None, "POST") => store.revision.to_string(),
        (None, _) => return Err(DocumentError(1226, "missing document key".to_owned())),
    };
    if store.conflicts.contains(&key) {
        return Err(DocumentError(1200, "write-write conflict".to_owned()));
    }
    let old = found.documents.get(&key).cloned();
    let mut new = match (method, &old) {
        ("DELETE", _) | ("PATCH", None) => found.get(&key)?.clone(),
        ("POST", Some(_)) if !query.contains("overwriteMode=update") => {
            return Err(taken(PRIMARY, &key));
        }
        (_, Some(old)) => old.clone(),
        (_, None) => Document::new(),
    };
    if method == "DELETE" {
        found.documents.remove(&key);
    } else {
        new.extend(entry.as_object().cloned().unwrap_or_default());
        new.insert("_key".into(), json!(key));
        new.insert("_rev".into(), json!(revision));
        found.check(&key, &new)?;
        found.documents.insert(key.clone(), new.clone());
    }
    let mut answer = json!({"_id": format!("{collection}/{key}"), "_key": key, "_rev": revision});
    if let Some(answer) = answer.as_object_mut() {
        if query.contains("returnNew=true") {
            answer.insert("new".into(), whole(collection, &new));
        }
        if let (true, Some(old)) = (query.contains("returnOld=true"), &old) {
            answer.insert("old".into(), whole(collection, old));
        }
    }
    Ok(answer)
}
