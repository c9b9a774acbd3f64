//! A cursor over the tokens of one statement, with the functions that all parts of the grammar
//! need.

use windrow_core::{Expression, Name, Piece, TableName};

use crate::lex::{Token, TokenKind};
use crate::word::{self, Use};

/// The reason why a statement is not joined: a short phrase.
pub(crate) type Refusal = &'static str;

/// The refusal of a text that cannot be parsed.
pub(crate) const UNCLEAR: Refusal = "not understood";
/// The refusal of a text that is valid for the server but not supported here.
pub(crate) const SYNTAX: Refusal = "a form that is not taken apart";
pub(crate) const SUBQUERY: Refusal = "a subquery";
pub(crate) const NAME: Refusal = "a name that the server would change";
pub(crate) const DEPTH: Refusal = "nested too deeply";

/// The largest depth of nested expressions.
const MAX_DEPTH: u8 = 48;

/// The most functions that a statement calls. Each is looked for among all of them.
const MAX_FUNCTIONS: usize = 100;

/// A part of an expression, by its tokens, and what it is where that matters.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// True if an expression names a column.
    pub(crate) columns: bool,
    pub(crate) form: Form,
}

/// The parts of an expression that matter for joining.
#[derive(Debug)]
pub(crate) enum Form {
    /// A column.
    Column(Name),
    /// `left = right`
    Equal(Box<(Node, Node)>),
    /// Conditions that all must hold.
    And(Vec<Node>),
    /// `ARRAY[element]`, by its element.
    Array(Box<Node>),
    /// Any other expression.
    Other,
}

pub(crate) struct Parser<'a> {
    pub(crate) text: &'a str,
    tokens: &'a [Token],
    pub(crate) at: usize,
    depth: u8,
    pub(crate) functions: Vec<TableName>,
    /// The names that may qualify a column.
    pub(crate) qualifiers: Vec<Name>,
    /// The table with its schema, if both may qualify a column: not if a statement gives the table
    /// another name or names no schema.
    pub(crate) relation: Option<TableName>,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a str, tokens: &'a [Token]) -> Self {
        Self {
            text,
            tokens,
            at: 0,
            depth: 0,
            functions: Vec::new(),
            qualifiers: Vec::new(),
            relation: None,
        }
    }

    /// Returns the kind of the token at this distance.
    pub(crate) fn kind(&self, ahead: usize) -> TokenKind {
        self.kind_at(self.at + ahead)
    }

    /// The kind of the token at a place.
    pub(crate) fn kind_at(&self, at: usize) -> TokenKind {
        self.tokens.get(at).map_or(TokenKind::End, |t| t.kind)
    }

    pub(crate) fn slice(&self, ahead: usize) -> &'a str {
        self.tokens
            .get(self.at + ahead)
            .and_then(|t| self.text.get(t.start..t.end))
            .unwrap_or_default()
    }

    /// Returns true if the token at this distance is the keyword.
    pub(crate) fn is_word(&self, ahead: usize, word: &str) -> bool {
        self.kind(ahead) == TokenKind::Word && self.slice(ahead).eq_ignore_ascii_case(word)
    }

    pub(crate) fn is_operator(&self, ahead: usize, operator: &str) -> bool {
        self.kind(ahead) == TokenKind::Operator && self.slice(ahead) == operator
    }

    /// Consumes a keyword if it is next.
    pub(crate) fn word(&mut self, word: &str) -> bool {
        let is = self.is_word(0, word);
        self.at += usize::from(is);
        is
    }

    /// Consumes keywords if all of them are next.
    pub(crate) fn words(&mut self, words: &[&str]) -> bool {
        let are = words
            .iter()
            .enumerate()
            .all(|(n, word)| self.is_word(n, word));
        if are {
            self.at += words.len();
        }
        are
    }

    pub(crate) fn expect_word(&mut self, word: &str) -> Result<(), Refusal> {
        if self.word(word) { Ok(()) } else { Err(SYNTAX) }
    }

    /// Consumes a token if it is next.
    pub(crate) fn take(&mut self, kind: TokenKind) -> bool {
        let is = self.kind(0) == kind;
        self.at += usize::from(is);
        is
    }

    pub(crate) fn expect(&mut self, kind: TokenKind) -> Result<(), Refusal> {
        if self.take(kind) { Ok(()) } else { Err(SYNTAX) }
    }

    pub(crate) fn operator(&mut self, operator: &str) -> bool {
        let is = self.is_operator(0, operator);
        self.at += usize::from(is);
        is
    }

    /// Runs a parser one level deeper, up to [`MAX_DEPTH`].
    pub(crate) fn nested<T>(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        if self.depth >= MAX_DEPTH {
            return Err(DEPTH);
        }
        self.depth += 1;
        let result = run(self);
        self.depth -= 1;
        result
    }

    /// Parses a list with commas, which must not be empty.
    pub(crate) fn list<T>(
        &mut self,
        mut one: impl FnMut(&mut Self) -> Result<T, Refusal>,
    ) -> Result<Vec<T>, Refusal> {
        let mut all = vec![one(self)?];
        while self.take(TokenKind::Comma) {
            all.push(one(self)?);
        }
        Ok(all)
    }

    /// Returns the identifier of the token at this distance, if it may be used so.
    pub(crate) fn name_at(&self, ahead: usize, allowed: &[Use]) -> Result<Name, Refusal> {
        let slice = self.slice(ahead);
        match self.kind(ahead) {
            TokenKind::Word if allowed.contains(&word::usage(slice)) => {
                word::fold(slice).map(Name::from).ok_or(NAME)
            }
            TokenKind::Quoted => word::unquote(slice).map(Name::from).ok_or(NAME),
            _ => Err(SYNTAX),
        }
    }

    /// Parses the name of a column, a table or an alias (`ColId`).
    pub(crate) fn column_name(&mut self) -> Result<Name, Refusal> {
        let name = self.name_at(0, &[Use::Any, Use::Column])?;
        self.at += 1;
        Ok(name)
    }

    /// Parses a name after a point or after AS, where any word is allowed (`ColLabel`).
    pub(crate) fn label(&mut self) -> Result<Name, Refusal> {
        let name = self.name_at(0, &[Use::Any, Use::Column, Use::Function, Use::Reserved])?;
        self.at += 1;
        Ok(name)
    }

    /// Parses `table` or `schema.table`.
    pub(crate) fn table_name(&mut self) -> Result<TableName, Refusal> {
        let first = self.column_name()?;
        if !self.take(TokenKind::Dot) {
            return Ok(TableName::bare(first));
        }
        let table = self.label()?;
        Ok(TableName {
            schema: Some(first),
            table,
        })
    }

    /// Returns the text from one token up to another.
    pub(crate) fn text_of(&self, from: usize, to: usize) -> &'a str {
        let start = self.tokens.get(from).map(|t| t.start);
        let end = to
            .checked_sub(1)
            .and_then(|last| self.tokens.get(last))
            .map(|t| t.end);
        match (start, end) {
            (Some(start), Some(end)) => self.text.get(start..end).unwrap_or_default(),
            _ => "",
        }
    }

    /// Returns the text from one token up to another, cut at its parameters.
    pub(crate) fn pieces(
        &self,
        from: usize,
        to: usize,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Refusal> {
        let tokens = self.tokens.get(from..to).unwrap_or_default();
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else {
            return Ok(());
        };
        let mut start = first.start;
        for token in tokens.iter().filter(|t| t.kind == TokenKind::Parameter) {
            self.push_text(start, token.start, pieces);
            pieces.push(Piece::Parameter(self.parameter(*token)?));
            start = token.end;
        }
        self.push_text(start, last.end, pieces);
        Ok(())
    }

    fn push_text(&self, start: usize, end: usize, pieces: &mut Vec<Piece>) {
        if let Some(text) = self.text.get(start..end).filter(|t| !t.is_empty()) {
            pieces.push(Piece::Text(text.into()));
        }
    }

    pub(crate) fn expression_of(&self, node: &Node) -> Result<Expression, Refusal> {
        let mut pieces = Vec::new();
        self.pieces(node.from, node.to, &mut pieces)?;
        Ok(Expression::Sql(pieces.into()))
    }

    /// Returns the number of a parameter. The protocol counts them from 1 to 65,535.
    fn parameter(&self, token: Token) -> Result<u16, Refusal> {
        self.text
            .get(token.start + 1..token.end)
            .and_then(|digits| digits.parse::<u16>().ok())
            .and_then(|number| number.checked_sub(1))
            .ok_or("a parameter outside of $1 to $65535")
    }

    /// Notes a function that is called.
    pub(crate) fn note_function(&mut self, name: TableName) -> Result<(), Refusal> {
        if self.functions.contains(&name) {
            return Ok(());
        }
        if self.functions.len() == MAX_FUNCTIONS {
            return Err(SYNTAX);
        }
        self.functions.push(name);
        Ok(())
    }
}
