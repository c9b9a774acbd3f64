//! Parses ON CONFLICT and RETURNING.

use windrow_core::{Conflict, Expression, Name, Piece};

use crate::lex::TokenKind;
use crate::parse::{Parser, Refusal, SYNTAX};
use crate::word::{self, Use};

/// RETURNING, taken apart: both as they stand.
#[derive(Default)]
pub(crate) struct Returning {
    /// `WITH (OLD AS o, NEW AS n)`.
    pub(crate) names: Option<Box<str>>,
    /// The list.
    pub(crate) list: Option<Box<str>>,
}

impl Parser<'_> {
    pub(crate) fn conflict(&mut self) -> Result<Option<Conflict>, Refusal> {
        let from = self.at;
        if !self.words(&["on", "conflict"]) {
            return Ok(None);
        }
        let columns = self.conflict_target()?;
        self.expect_word("do")?;
        let update = !self.word("nothing");
        let (mut assignments, mut has_condition) = (Vec::new(), false);
        if update {
            self.expect_word("update")?;
            self.expect_word("set")?;
            self.qualifiers.push("excluded".into());
            assignments = self.list(Self::assignment)?;
            has_condition = self.word("where");
            if has_condition {
                self.condition()?;
            }
            self.qualifiers.pop();
        }
        let mut pieces = Vec::new();
        self.pieces(from, self.at, &mut pieces)?;
        Ok(Some(Conflict {
            columns,
            update,
            assignments: assignments.into_iter().flatten().collect(),
            has_condition,
            sql: Expression::Sql(pieces.into()),
        }))
    }

    /// The columns of the target, where it is nothing but columns.
    fn conflict_target(&mut self) -> Result<Option<Box<[Name]>>, Refusal> {
        if self.words(&["on", "constraint"]) {
            self.column_name()?;
            return Ok(None);
        }
        if !self.take(TokenKind::Open) {
            return Ok(None);
        }
        let elements = self.list(Self::index_element)?;
        self.expect(TokenKind::Close)?;
        let partial = self.word("where");
        if partial {
            self.condition()?;
        }
        let columns: Option<Box<[Name]>> = elements.into_iter().collect();
        Ok(columns.filter(|_| !partial))
    }

    /// A column, a call or an expression in parentheses.
    fn index_element(&mut self) -> Result<Option<Name>, Refusal> {
        let column = matches!(self.kind(1), TokenKind::Comma | TokenKind::Close);
        if column {
            return self.column_name().map(Some);
        }
        if self.take(TokenKind::Open) {
            self.expression()?;
            self.expect(TokenKind::Close)?;
            return Ok(None);
        }
        // A call of a function, not one of the forms that look like one.
        if self.kind(1) != TokenKind::Open || self.name_at(0, &[Use::Any, Use::Function]).is_err() {
            return Err(SYNTAX);
        }
        self.primary()?;
        Ok(None)
    }

    pub(crate) fn returning(&mut self) -> Result<Returning, Refusal> {
        if !self.word("returning") {
            return Ok(Returning::default());
        }
        let known = self.qualifiers.len();
        let names = self.names_of_versions()?;
        let from = self.at;
        self.list(Self::returned)?;
        self.qualifiers.truncate(known);
        let mut pieces = Vec::new();
        self.pieces(from, self.at, &mut pieces)?;
        if pieces
            .iter()
            .any(|piece| matches!(piece, Piece::Parameter(_)))
        {
            return Err("a parameter in RETURNING");
        }
        let list = Some(self.text_of(from, self.at).into());
        Ok(Returning { names, list })
    }

    /// Reads `WITH (OLD AS o, NEW AS n)`, and admits the names of both versions of a row. Servers
    /// before PostgreSQL 18 refuse them.
    fn names_of_versions(&mut self) -> Result<Option<Box<str>>, Refusal> {
        let from = self.at;
        let mut named = [("old", None), ("new", None)];
        let is_with = self.is_word(0, "with");
        if is_with {
            self.at += 1;
            self.expect(TokenKind::Open)?;
            self.list(|parser| parser.name_of_version(&mut named))?;
            self.expect(TokenKind::Close)?;
        }
        for (usual, given) in named {
            // A table of that name, or with that alias, is meant by it.
            let name = given.unwrap_or_else(|| usual.into());
            self.qualifiers.push(name);
        }
        Ok(is_with.then(|| self.text_of(from, self.at).into()))
    }

    /// Reads `OLD AS name` or `NEW AS name`, each once.
    fn name_of_version(
        &mut self,
        named: &mut [(&'static str, Option<Name>)],
    ) -> Result<(), Refusal> {
        let version = named.iter_mut().find(|(word, _)| self.is_word(0, word));
        let (_, place) = version.filter(|(_, given)| given.is_none()).ok_or(SYNTAX)?;
        self.at += 1;
        self.expect_word("as")?;
        *place = Some(self.column_name()?);
        Ok(())
    }

    fn returned(&mut self) -> Result<(), Refusal> {
        if self.operator("*") {
            return Ok(());
        }
        if self.kind(1) == TokenKind::Dot && self.is_operator(2, "*") {
            let qualifier = self.column_name()?;
            self.at += 2;
            return if self.qualifiers.contains(&qualifier) {
                Ok(())
            } else {
                Err(SYNTAX)
            };
        }
        self.expression()?;
        let bare = match self.kind(0) {
            TokenKind::Quoted => true,
            TokenKind::Word => self.name_at(0, &[Use::Any]).is_ok() && !needs_as(self.slice(0)),
            _ => false,
        };
        if self.word("as") || bare {
            self.label()?;
        }
        Ok(())
    }
}

/// Words that are no label without AS, although they may be names.
fn needs_as(word: &str) -> bool {
    const NEED: &[&str] = &[
        "day", "filter", "hour", "minute", "month", "over", "second", "within", "without", "year",
    ];
    word::listed(NEED, word)
}
