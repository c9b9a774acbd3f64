//! Parses the operands of expressions: constants, parameters, columns, calls, and forms with a
//! syntax of their own (`c_expr` in `gram.y`).

use windrow_core::TableName;

use crate::lex::TokenKind;
use crate::parse::{Form, Node, Parser, Refusal, SUBQUERY, SYNTAX};
use crate::types;
use crate::word::{Use, listed};

/// Keywords that are values by themselves. They have the same value in all statements of a
/// transaction.
const VALUES: &[&str] = &[
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "false",
    "localtime",
    "localtimestamp",
    "null",
    "session_user",
    "true",
    "user",
];

/// Keywords for times that accept a precision.
const TIMES: &[&str] = &[
    "current_time",
    "current_timestamp",
    "localtime",
    "localtimestamp",
];

/// Returns true for a keyword whose value is the time when the transaction began.
pub(crate) fn is_clock(word: &str) -> bool {
    word.eq_ignore_ascii_case("current_date") || listed(TIMES, word)
}

/// Columns that every table has. Their values show who shares a transaction.
const SYSTEM: &[&str] = &["cmax", "cmin", "ctid", "tableoid", "xmax", "xmin"];

/// Functions with a syntax of their own, whose arguments are a plain list.
const PLAIN: &[&str] = &["coalesce", "greatest", "least"];

/// The fields of EXTRACT.
#[rustfmt::skip]
const FIELDS: &[&str] = &[
    "century", "day", "decade", "dow", "doy", "epoch", "hour", "isodow", "isoyear", "julian", "microseconds",
    "millennium", "milliseconds", "minute", "month", "quarter", "second", "timezone", "timezone_hour",
    "timezone_minute", "week", "year",
];

pub(crate) const SYSTEM_COLUMN: Refusal = "a system column";

impl Parser<'_> {
    pub(crate) fn primary(&mut self) -> Result<Node, Refusal> {
        let from = self.at;
        match self.kind(0) {
            TokenKind::Open => self.parenthesis(),
            TokenKind::Parameter => {
                self.at += 1;
                if matches!(self.kind(0), TokenKind::Dot | TokenKind::OpenBracket) {
                    return Err(SYNTAX);
                }
                Ok(self.node(from, false))
            }
            TokenKind::Text
            | TokenKind::Escape
            | TokenKind::Dollar
            | TokenKind::Bits
            | TokenKind::Integer
            | TokenKind::Decimal => {
                self.at += 1;
                Ok(self.node(from, false))
            }
            TokenKind::Quoted => self.named(),
            TokenKind::Word => self.keyword(),
            _ => Err(SYNTAX),
        }
    }

    fn keyword(&mut self) -> Result<Node, Refusal> {
        let (from, word) = (self.at, self.slice(0));
        let call = self.kind(1) == TokenKind::Open && !listed(TIMES, word);
        if listed(VALUES, word) && !call {
            self.at += 1;
            if listed(TIMES, word) && self.take(TokenKind::Open) {
                self.expect(TokenKind::Integer)?;
                self.expect(TokenKind::Close)?;
            }
            return Ok(self.node(from, false));
        }
        if listed(PLAIN, word) && self.kind(1) == TokenKind::Open {
            self.at += 1;
            let columns = self.arguments()?;
            return Ok(self.node(from, columns));
        }
        let lower = word.to_ascii_lowercase();
        let columns = match (lower.as_str(), self.kind(1)) {
            ("case", _) => self.case()?,
            ("cast", TokenKind::Open) => self.cast()?,
            ("extract", TokenKind::Open) => self.extract()?,
            ("nullif", TokenKind::Open) => self.nullif()?,
            ("position", TokenKind::Open) => self.position()?,
            ("substring", TokenKind::Open) => self.substring()?,
            ("trim", TokenKind::Open) => self.trim()?,
            ("array", TokenKind::OpenBracket) => {
                self.at += 1;
                let (columns, only) = self.array()?;
                let form = only.map_or(Form::Other, |only| Form::Array(Box::new(only)));
                return Ok(Node {
                    form,
                    ..self.node(from, columns)
                });
            }
            ("row", TokenKind::Open) => {
                self.at += 1;
                self.arguments()?
            }
            ("exists", TokenKind::Open) | ("select", _) => return Err(SUBQUERY),
            ("array", TokenKind::Open) => return Err(SUBQUERY),
            ("default", _) => return Err("DEFAULT inside of an expression"),
            _ => return self.named(),
        };
        Ok(self.node(from, columns))
    }

    /// Parses `(first, second, ..)`. Returns true if it names columns.
    fn arguments(&mut self) -> Result<bool, Refusal> {
        self.expect(TokenKind::Open)?;
        let all = self.list(Self::expression)?;
        self.expect(TokenKind::Close)?;
        Ok(all.iter().any(|node| node.columns))
    }

    fn case(&mut self) -> Result<bool, Refusal> {
        self.at += 1;
        let mut columns = false;
        if !self.is_word(0, "when") {
            columns |= self.expression()?.columns;
        }
        self.expect_word("when")?;
        loop {
            columns |= self.expression()?.columns;
            self.expect_word("then")?;
            columns |= self.expression()?.columns;
            if !self.word("when") {
                break;
            }
        }
        if self.word("else") {
            columns |= self.expression()?.columns;
        }
        self.expect_word("end")?;
        Ok(columns)
    }

    fn cast(&mut self) -> Result<bool, Refusal> {
        self.at += 2;
        let columns = self.expression()?.columns;
        self.expect_word("as")?;
        types::type_name(self)?;
        self.expect(TokenKind::Close)?;
        Ok(columns)
    }

    fn extract(&mut self) -> Result<bool, Refusal> {
        self.at += 2;
        if !matches!(self.kind(0), TokenKind::Text | TokenKind::Escape) {
            // The grammar accepts no keyword but those six that are fields of an interval.
            if self.kind(0) != TokenKind::Word || !listed(FIELDS, self.slice(0)) {
                return Err(SYNTAX);
            }
        }
        self.at += 1;
        self.expect_word("from")?;
        let columns = self.expression()?.columns;
        self.expect(TokenKind::Close)?;
        Ok(columns)
    }

    fn nullif(&mut self) -> Result<bool, Refusal> {
        self.at += 2;
        let value = self.expression()?.columns;
        self.expect(TokenKind::Comma)?;
        let null = self.expression()?.columns;
        self.expect(TokenKind::Close)?;
        Ok(value || null)
    }

    fn position(&mut self) -> Result<bool, Refusal> {
        self.at += 2;
        let part = self.narrow_operand()?.columns;
        self.expect_word("in")?;
        let whole = self.narrow_operand()?.columns;
        self.expect(TokenKind::Close)?;
        Ok(part || whole)
    }

    fn substring(&mut self) -> Result<bool, Refusal> {
        self.at += 2;
        let first = self.expression()?;
        let mut columns = first.columns;
        if self.word("from") {
            columns |= self.expression()?.columns;
            if self.word("for") {
                columns |= self.expression()?.columns;
            }
        } else {
            // With commas it is a call like any other, found by its name.
            self.note_function(TableName::bare("substring"))?;
            while self.take(TokenKind::Comma) {
                columns |= self.expression()?.columns;
            }
        }
        self.expect(TokenKind::Close)?;
        Ok(columns)
    }

    fn trim(&mut self) -> Result<bool, Refusal> {
        self.at += 2;
        let _side = ["both", "leading", "trailing"]
            .iter()
            .any(|side| self.word(side));
        let mut columns = false;
        if !self.is_word(0, "from") {
            columns |= self.expression()?.columns;
        }
        if self.word("from") {
            columns |= self.expression()?.columns;
        }
        self.expect(TokenKind::Close)?;
        Ok(columns)
    }

    /// Parses `[a, b]` behind ARRAY, or inside of such a bracket. Returns true if the elements name
    /// columns, and the element, if there is one alone.
    fn array(&mut self) -> Result<(bool, Option<Node>), Refusal> {
        self.expect(TokenKind::OpenBracket)?;
        if self.take(TokenKind::CloseBracket) {
            return Ok((false, None));
        }
        let deep = self.kind(0) == TokenKind::OpenBracket;
        let mut all = self.list(|parser| {
            if deep {
                let from = parser.at;
                let (columns, _) = parser.nested(Self::array)?;
                Ok(parser.node(from, columns))
            } else {
                parser.expression()
            }
        })?;
        self.expect(TokenKind::CloseBracket)?;
        if self.kind(0) == TokenKind::OpenBracket {
            return Err(SYNTAX);
        }
        let columns = all.iter().any(|node| node.columns);
        let last = all.pop().filter(|_| all.is_empty() && !deep);
        Ok((columns, last))
    }

    /// Parses an operand that begins with a name: a call, a constant after its type, or a column.
    fn named(&mut self) -> Result<Node, Refusal> {
        let from = self.at;
        if let Some(node) = types::typed_constant(self)? {
            return Ok(node);
        }
        let qualified = self.kind(1) == TokenKind::Dot;
        let name_end = if qualified { 3 } else { 1 };
        if self.kind(name_end) == TokenKind::Open {
            return self.call(name_end);
        }
        let column = if qualified {
            self.qualifier()?;
            self.label()?
        } else {
            self.column_name()?
        };
        if listed(SYSTEM, &column) {
            return Err(SYSTEM_COLUMN);
        }
        match self.kind(0) {
            TokenKind::Dot | TokenKind::Open => return Err(SYNTAX),
            TokenKind::OpenBracket => {
                self.at += 1;
                self.expression()?;
                self.expect(TokenKind::CloseBracket)?;
                if matches!(self.kind(0), TokenKind::OpenBracket | TokenKind::Dot) {
                    return Err(SYNTAX);
                }
                return Ok(self.node(from, true));
            }
            _ => {}
        }
        Ok(Node {
            from,
            to: self.at,
            columns: true,
            form: Form::Column(column),
        })
    }

    /// Parses the qualifier of a column: `table.` or `schema.table.`.
    fn qualifier(&mut self) -> Result<(), Refusal> {
        let is_ours = if self.kind(3) == TokenKind::Dot {
            let relation = Some(self.table_name()?);
            self.relation == relation
        } else {
            let name = self.column_name()?;
            self.qualifiers.contains(&name)
        };
        self.at += 1;
        match is_ours {
            true => Ok(()),
            false => Err("a column of something else than the table"),
        }
    }

    fn call(&mut self, name_end: usize) -> Result<Node, Refusal> {
        let from = self.at;
        let uses = [Use::Any, Use::Function];
        let name = if name_end == 3 {
            TableName {
                schema: Some(self.name_at(0, &[Use::Any, Use::Column])?),
                table: self.name_at(2, &[Use::Any, Use::Column, Use::Function, Use::Reserved])?,
            }
        } else {
            TableName::bare(self.name_at(0, &uses)?)
        };
        self.at += name_end;
        let empty = self.kind(1) == TokenKind::Close;
        let columns = if empty {
            self.at += 2;
            false
        } else {
            self.arguments()?
        };
        if ["over", "filter", "within", "ignore", "respect"]
            .iter()
            .any(|word| self.is_word(0, word))
        {
            return Err("a window or aggregate function");
        }
        self.note_function(name)?;
        Ok(self.node(from, columns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted() {
        for list in [VALUES, TIMES, SYSTEM, PLAIN, FIELDS] {
            assert!(list.is_sorted());
        }
    }
}
