//! INSERT, UPDATE and DELETE, taken apart.

use windrow_core::{Expression, Name, Op, ParsedStatement, Piece, TableName};

use crate::lex::{Token, TokenKind};
use crate::parse::{Form, Node, Parser, Refusal, SUBQUERY, SYNTAX};
use crate::word::Use;

/// Reads one statement that begins with INSERT, UPDATE or DELETE.
pub(crate) fn parsed(
    text: &str,
    tokens: &[Token],
    types: &[u32],
) -> Result<ParsedStatement, Refusal> {
    let mut parser = Parser::new(text, tokens);
    let parsed = if parser.word("insert") {
        parser.insert(types)
    } else if parser.word("update") {
        parser.update(types)
    } else {
        parser.expect_word("delete")?;
        parser.delete(types)
    }?;
    match parser.kind(0) {
        TokenKind::End => Ok(ParsedStatement {
            functions: parser.functions.into(),
            ..parsed
        }),
        _ => Err(SYNTAX),
    }
}

fn empty(
    text: &str,
    types: &[u32],
    op: Op,
    table: TableName,
    alias: Option<Name>,
) -> ParsedStatement {
    ParsedStatement {
        text: text.into(),
        types: types.into(),
        op,
        table,
        alias,
        columns: None,
        values: [].into(),
        overriding: None,
        conflict: None,
        assignments: [].into(),
        keys: [].into(),
        conditions: None,
        returning: None,
        returning_names: None,
        functions: [].into(),
        set_based: true,
    }
}

impl Parser<'_> {
    fn insert(&mut self, types: &[u32]) -> Result<ParsedStatement, Refusal> {
        self.expect_word("into")?;
        let table = self.table_name()?;
        let alias = if self.word("as") {
            Some(self.column_name()?)
        } else {
            None
        };
        self.qualify(&table, alias.as_ref());
        let columns = self.insert_columns()?;
        let overriding = self.overriding()?;
        let mut rows = self.rows()?;
        let several = rows.len() > 1;
        let values = if several {
            Vec::new()
        } else {
            rows.pop().unwrap_or_default()
        };
        let conflict = self.conflict()?;
        let returning = self.returning()?;
        Ok(ParsedStatement {
            columns,
            values: values.into(),
            overriding,
            conflict,
            returning: returning.list,
            returning_names: returning.names,
            set_based: !several,
            ..empty(self.text, types, Op::Insert, table, alias)
        })
    }

    /// Sets the names that may qualify a column.
    fn qualify(&mut self, table: &TableName, alias: Option<&Name>) {
        self.qualifiers = vec![alias.unwrap_or(&table.table).clone()];
        let has_both = alias.is_none() && table.schema.is_some();
        self.relation = has_both.then(|| table.clone());
    }

    fn insert_columns(&mut self) -> Result<Option<Box<[Name]>>, Refusal> {
        if self.kind(0) != TokenKind::Open {
            return Ok(None);
        }
        if ["select", "with", "values", "table"]
            .iter()
            .any(|w| self.is_word(1, w))
            || self.kind(1) == TokenKind::Open
        {
            return Err(INSERT_SELECT);
        }
        Ok(Some(self.names()?.into()))
    }

    /// Parses `(a, b)`.
    fn names(&mut self) -> Result<Vec<Name>, Refusal> {
        self.expect(TokenKind::Open)?;
        let names = self.list(Self::target)?;
        self.expect(TokenKind::Close)?;
        Ok(names)
    }

    /// A column that gets a value.
    fn target(&mut self) -> Result<Name, Refusal> {
        let name = self.column_name()?;
        match self.kind(0) {
            TokenKind::Dot | TokenKind::OpenBracket => Err("an element or a field as the target"),
            _ => Ok(name),
        }
    }

    fn overriding(&mut self) -> Result<Option<Box<str>>, Refusal> {
        let from = self.at;
        if !self.word("overriding") {
            return Ok(None);
        }
        if !self.word("system") {
            self.expect_word("user")?;
        }
        self.expect_word("value")?;
        Ok(Some(self.text_of(from, self.at).into()))
    }

    /// The rows of VALUES; none for DEFAULT VALUES.
    fn rows(&mut self) -> Result<Vec<Vec<Expression>>, Refusal> {
        if self.words(&["default", "values"]) {
            return Ok(Vec::new());
        }
        if !self.word("values") {
            let query = self.kind(0) == TokenKind::Open
                || ["select", "with", "table"]
                    .iter()
                    .any(|w| self.is_word(0, w));
            return Err(if query { INSERT_SELECT } else { SYNTAX });
        }
        self.list(|parser| {
            parser.expect(TokenKind::Open)?;
            let row = parser.list(Self::value)?;
            parser.expect(TokenKind::Close)?;
            Ok(row)
        })
    }

    fn value(&mut self) -> Result<Expression, Refusal> {
        let (value, columns) = self.item()?;
        if columns {
            Err("a column among the values")
        } else {
            Ok(value)
        }
    }

    /// An expression or DEFAULT, and whether it names columns.
    fn item(&mut self) -> Result<(Expression, bool), Refusal> {
        if self.word("default") {
            return Ok((Expression::Default, false));
        }
        let node = self.expression()?;
        Ok((self.expression_of(&node)?, node.columns))
    }

    fn update(&mut self, types: &[u32]) -> Result<ParsedStatement, Refusal> {
        let (table, alias) = self.changed_table()?;
        self.expect_word("set")?;
        let assignments: Vec<_> = self.list(Self::assignment)?.into_iter().flatten().collect();
        if self.is_word(0, "from") {
            return Err("UPDATE .. FROM");
        }
        let (keys, conditions) = self.filter()?;
        let returning = self.returning()?;
        Ok(ParsedStatement {
            assignments: assignments.into(),
            keys,
            conditions,
            returning: returning.list,
            returning_names: returning.names,
            ..empty(self.text, types, Op::Update, table, alias)
        })
    }

    fn delete(&mut self, types: &[u32]) -> Result<ParsedStatement, Refusal> {
        self.expect_word("from")?;
        let (table, alias) = self.changed_table()?;
        if self.is_word(0, "using") {
            return Err("DELETE .. USING");
        }
        let (keys, conditions) = self.filter()?;
        let returning = self.returning()?;
        Ok(ParsedStatement {
            keys,
            conditions,
            returning: returning.list,
            returning_names: returning.names,
            ..empty(self.text, types, Op::Delete, table, alias)
        })
    }

    /// The table of UPDATE and DELETE and its alias. Without AS, the grammar takes SET for no
    /// alias.
    fn changed_table(&mut self) -> Result<(TableName, Option<Name>), Refusal> {
        if self.is_word(0, "only") {
            return Err(INHERITANCE);
        }
        let table = self.table_name()?;
        if self.is_operator(0, "*") {
            return Err(INHERITANCE);
        }
        let bare = matches!(self.kind(0), TokenKind::Word | TokenKind::Quoted)
            && !self.is_word(0, "set")
            && self.name_at(0, &[Use::Any, Use::Column]).is_ok();
        let alias = if self.word("as") || bare {
            Some(self.column_name()?)
        } else {
            None
        };
        self.qualify(&table, alias.as_ref());
        Ok((table, alias))
    }

    /// `column = value`, or `(a, b) = (x, y)`, which says the same as `a = x, b = y`.
    pub(crate) fn assignment(&mut self) -> Result<Vec<(Name, Expression)>, Refusal> {
        if self.kind(0) != TokenKind::Open {
            let column = self.target()?;
            self.equals()?;
            return Ok(vec![(column, self.item()?.0)]);
        }
        let columns = self.names()?;
        self.equals()?;
        let row = self.word("row");
        self.expect(TokenKind::Open)?;
        if ["select", "with", "values", "table"]
            .iter()
            .any(|w| self.is_word(0, w))
        {
            return Err(SUBQUERY);
        }
        let values = self.list(|parser| Ok(parser.item()?.0))?;
        self.expect(TokenKind::Close)?;
        if values.len() != columns.len() || (values.len() == 1 && !row) {
            return Err(SYNTAX);
        }
        Ok(columns.into_iter().zip(values).collect())
    }

    fn equals(&mut self) -> Result<(), Refusal> {
        if self.operator("=") {
            Ok(())
        } else {
            Err(SYNTAX)
        }
    }

    pub(crate) fn condition(&mut self) -> Result<Node, Refusal> {
        if self.is_word(0, "current") && self.is_word(1, "of") {
            return Err("WHERE CURRENT OF");
        }
        self.expression()
    }

    /// WHERE, as keys and all other conditions.
    #[expect(clippy::type_complexity, reason = "the two fields of a parsed")]
    fn filter(&mut self) -> Result<(Box<[(Name, Expression)]>, Option<Expression>), Refusal> {
        if !self.word("where") {
            return Err(NO_KEY);
        }
        let condition = self.condition()?;
        let all = match condition.form {
            Form::And(all) => all,
            _ => vec![condition],
        };
        let mut keys: Vec<(Name, Expression)> = Vec::new();
        let mut others = Vec::new();
        for node in &all {
            match key(node) {
                // A second condition on the same column is a condition like any other.
                Some((name, value)) if !keys.iter().any(|(known, _)| known == name) => {
                    keys.push((name.clone(), self.expression_of(value)?));
                }
                _ => {
                    if !others.is_empty() {
                        others.push(Piece::Text(" AND ".into()));
                    }
                    self.pieces(node.from, node.to, &mut others)?;
                }
            }
        }
        if keys.is_empty() {
            return Err(NO_KEY);
        }
        let conditions = (!others.is_empty()).then(|| Expression::Sql(others.into()));
        Ok((keys.into(), conditions))
    }
}

const INSERT_SELECT: Refusal = "INSERT .. SELECT";
const INHERITANCE: Refusal = "ONLY or * behind the table";
const NO_KEY: Refusal = "no condition column = value";

/// A condition `column = expression` where the expression names no column.
fn key(node: &Node) -> Option<(&Name, &Node)> {
    match &node.form {
        Form::Equal(sides) => match &**sides {
            (
                Node {
                    form: Form::Column(name),
                    ..
                },
                value,
            ) if !value.columns => Some((name, value)),
            _ => None,
        },
        _ => None,
    }
}
