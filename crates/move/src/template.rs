//! The names of destinations: one name, or one made from a value of each row.

use windrow_core::moves::NameLimit;
use windrow_core::{Fault, Name, TableName};

/// The name of a destination in the options: `final`, `final_{tenant}`, `{tenant}.final`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    whole: TableName,
    /// The column between the braces; empty for `{}`.
    column: Option<String>,
}

impl Template {
    /// Parses a table's name, with a column in braces in the place of its value.
    ///
    /// # Errors
    /// [`windrow_core::FaultClass::Invalid`] if the name is invalid, a brace is unpaired, or there
    /// is more than one column.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let whole = TableName::parse(text)?;
        let mut columns = Vec::new();
        for part in whole.schema.iter().chain([&whole.table]) {
            let mut rest: &str = part;
            while let Some(place) = rest.find(['{', '}']) {
                let behind = rest.get(place..).unwrap_or_default();
                let inner = behind.strip_prefix('{').and_then(|b| b.split_once('}'));
                let Some((column, behind)) = inner.filter(|(column, _)| !column.contains('{'))
                else {
                    return Err(Fault::invalid(format!(
                        "the destination {text:?} has a brace that stands alone; {{column}} stands for a column's value"
                    )));
                };
                columns.push(column.to_owned());
                rest = behind;
            }
        }
        if columns.len() > 1 {
            return Err(Fault::invalid(format!(
                "the destination {text:?} names {} columns; one is what can decide where a row goes",
                columns.len()
            )));
        }
        Ok(Self {
            whole,
            column: columns.pop(),
        })
    }

    /// Returns the column that decides the destination of a row. `asked` is the column that the
    /// user names in addition to the template.
    ///
    /// # Errors
    /// [`windrow_core::FaultClass::Invalid`] if the two differ, or none is named.
    pub fn route(&self, asked: Option<&str>) -> Result<Option<Name>, Fault> {
        match (self.column.as_deref(), asked) {
            (None, None) => Ok(None),
            (None, Some(asked)) => Err(Fault::invalid(format!(
                "rows are to be routed by {asked}, but the destination {} does not say where its value goes: write {{{asked}}}",
                self.whole
            ))),
            (Some(""), None) => Err(Fault::invalid(
                "the destination holds {}, and no column is named that it stands for: write {COLUMN}, or name it by --route-by",
            )),
            (Some(own), Some(asked)) if !own.is_empty() && own != asked => Err(Fault::invalid(
                format!("rows are to be routed by {asked}, but the destination names {own}"),
            )),
            (Some(own), asked) => Ok(Some(asked.unwrap_or(own).into())),
        }
    }

    /// Returns the table, if all rows go to the same one.
    pub fn table(&self) -> Option<&TableName> {
        self.column.is_none().then_some(&self.whole)
    }

    /// Returns the table of rows with this value.
    ///
    /// # Errors
    /// [`windrow_core::FaultClass::Invalid`] if the value gives no valid name.
    pub fn name(&self, value: Option<&str>, limit: NameLimit) -> Result<TableName, Fault> {
        let Some(column) = &self.column else {
            return Ok(self.whole.clone());
        };
        let value =
            value.ok_or_else(|| unnamed("the value that decides where the row goes is NULL"))?;
        if value.is_empty() {
            return Err(unnamed(
                "the value that decides where the row goes is empty",
            ));
        }
        let hole = format!("{{{column}}}");
        let fill = |part: &Name| -> Result<Name, Fault> {
            if !part.contains(&hole) {
                return Ok(part.clone());
            }
            let name = part.replacen(&hole, value, 1);
            limit.check(&name)?;
            Ok(name.into())
        };
        Ok(TableName {
            schema: self.whole.schema.as_ref().map(fill).transpose()?,
            table: fill(&self.whole.table)?,
        })
    }
}

fn unnamed(why: &str) -> Fault {
    Fault::new(windrow_core::FaultClass::Invalid, "42602", why)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: NameLimit = NameLimit::Bytes(63);

    fn named(template: &str, value: &str) -> TableName {
        let template = Template::parse(template).unwrap();
        template.name(Some(value), LIMIT).unwrap()
    }

    #[test]
    fn values_are_put_in_as_they_are() {
        assert_eq!(named("final", "x"), TableName::bare("final"));
        assert_eq!(named("f_{Tenant}", "ACME"), TableName::bare("f_ACME"));
        assert_eq!(named("f_{t}_x", "a.b"), TableName::bare("f_a.b_x"));
        assert_eq!(
            named("f_{t}", "x\"; drop table y; --"),
            TableName::bare("f_x\"; drop table y; --")
        );
        assert_eq!(named("f_{t}", "{t}"), TableName::bare("f_{t}"));
        let schema = named("{t}.final", "a b");
        assert_eq!(schema.schema.as_deref(), Some("a b"));
        assert_eq!(&*schema.table, "final");
    }

    #[test]
    fn what_makes_no_name_is_said() {
        let template = Template::parse("final_{t}").unwrap();
        assert!(template.name(None, LIMIT).is_err());
        assert!(template.name(Some(""), LIMIT).is_err());
        assert!(template.name(Some(&"x".repeat(58)), LIMIT).is_err());
        assert!(template.name(Some(&"x".repeat(57)), LIMIT).is_ok());
        assert!(template.name(Some("a\0"), LIMIT).is_err());
    }

    #[test]
    fn templates_that_make_no_sense_are_refused() {
        for bad in ["a{", "a}", "{a", "{a{b}}", "{a}{b}", "{a}.{b}", "", "a.b.c"] {
            assert!(Template::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_route_is_named_once() {
        let route = |template, asked| Template::parse(template).unwrap().route(asked);
        assert_eq!(route("f", None), Ok(None));
        assert_eq!(route("f_{t}", None), Ok(Some("t".into())));
        assert_eq!(route("f_{t}", Some("t")), Ok(Some("t".into())));
        assert_eq!(route("f_{}", Some("t")), Ok(Some("t".into())));
        assert!(route("f_{}", None).is_err());
        assert!(route("f", Some("t")).is_err());
        assert!(route("f_{u}", Some("t")).is_err());
    }
}
