//! Counts rows that would be moved, by their route.

use windrow_core::Fault;
use windrow_database::moved::push_filter;
use windrow_database::quote::push_ident;
use windrow_pgwire::wire::Wire;

use super::text::{ENCODING, Texts, hex};
use super::unreadable::is_unreadable;
use crate::talk::{Ask, number, talk, text, word};

/// Counts rows by their route, at most `most` routes. Rows whose route is no text in UTF-8 count
/// as rows without one: none of them names a table.
pub(super) async fn survey(
    wire: &mut Wire,
    texts: &Texts,
    most: usize,
) -> Result<Vec<(Option<Box<str>>, u64)>, Fault> {
    let as_text = |route: &str| format!("{route}::text");
    match count(wire, texts.survey(most, as_text)).await {
        Err(fault) if is_unreadable(&fault) => {
            // The statement that failed has left its transaction open.
            talk(wire, &[Ask::of("ROLLBACK")], false, &mut |_, _| {}).await?;
        }
        counted => return counted,
    }
    let mut counted = Vec::new();
    let mut nameless = 0;
    for (digits, rows) in count(wire, texts.survey(most, hex)).await? {
        let route = match digits {
            None => None,
            Some(digits) => readable(wire, &digits).await?,
        };
        match route {
            None => nameless += rows,
            route => counted.push((route, rows)),
        }
    }
    if nameless > 0 {
        counted.push((None, nameless));
    }
    Ok(counted)
}

impl Texts {
    /// Returns the query that counts the rows by a form of their route.
    fn survey(&self, most: usize, form: impl Fn(&str) -> String) -> String {
        let mut what = String::from("NULL::text");
        if let Some(route) = &self.plan.route {
            what.clear();
            push_ident(&mut what, route);
            what = form(&what);
        }
        let mut sql = format!("SELECT {what}, count(*) FROM {}", self.source);
        push_filter(&mut sql, self.plan.filter.as_deref());
        sql.push_str(&format!(" GROUP BY 1 ORDER BY 1 LIMIT {most}"));
        sql
    }
}

async fn count(wire: &mut Wire, sql: String) -> Result<Vec<(Option<Box<str>>, u64)>, Fault> {
    let mut found = Vec::new();
    let asks = [Ask::of("BEGIN READ ONLY"), Ask::of(sql), Ask::of("COMMIT")];
    talk(wire, &asks, false, &mut |_, row| {
        let route = text(&row, 0).map(String::into_boxed_str);
        found.push((route, number(&row, 1)));
    })
    .await?;
    Ok(found)
}

/// Returns the text of these bytes; `None` if it has no form in UTF-8.
async fn readable(wire: &mut Wire, digits: &str) -> Result<Option<Box<str>>, Fault> {
    let text_of_bytes = format!("SELECT convert_from(decode($1, 'hex'), {ENCODING})");
    match word(wire, Ask::of(text_of_bytes).text(digits)).await {
        Ok(text) => Ok(text.map(String::into_boxed_str)),
        Err(fault) if is_unreadable(&fault) => Ok(None),
        Err(fault) => Err(fault),
    }
}
