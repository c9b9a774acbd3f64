//! Parses expressions of harmless bodies. The precedence of operators does not matter here, but
//! only what an expression contains.

use windrow_sql::is_moment;
use windrow_sql::lex::TokenKind;

use super::Reader;
use super::tokens::Why;
use crate::clock::is_clock_word;
use crate::list;

/// Keywords that are values.
const WORDS: &str = "null true false current_timestamp current_date current_time localtimestamp localtime current_user \
    current_role session_user user current_catalog current_schema tg_op tg_name tg_when tg_level tg_table_name \
    tg_table_schema tg_relid tg_relname tg_nargs tg_argv";

/// Built-in types, by their first word.
const TYPES: &str = "boolean bool smallint int2 integer int int4 bigint int8 real float4 float8 float double numeric decimal \
    text varchar char character bpchar name bytea uuid json jsonb date time timetz timestamp timestamptz interval inet cidr \
    macaddr macaddr8 money bit varbit point line lseg box path polygon circle tsvector tsquery int4range int8range numrange \
    tsrange tstzrange daterange oid xml";

/// Words that look like functions, but have a syntax of their own.
const GRAMMAR: &str = "coalesce nullif greatest least";

fn is_in(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == name)
}

impl Reader<'_> {
    /// Parses expressions separated by commas.
    pub(super) fn list(&mut self) -> Result<(), Why> {
        self.expression()?;
        while self.tokens.skip_comma() {
            self.expression()?;
        }
        Ok(())
    }

    pub(super) fn expression(&mut self) -> Result<(), Why> {
        self.deeper(|reader| {
            loop {
                reader.operand()?;
                if !reader.behind_operand()? {
                    return Ok(());
                }
            }
        })
    }

    /// Parses the token after an operand. Returns true if another operand must follow.
    fn behind_operand(&mut self) -> Result<bool, Why> {
        loop {
            match self.tokens.kind(0) {
                TokenKind::Operator => {
                    self.operator()?;
                    return Ok(true);
                }
                TokenKind::Cast => {
                    self.tokens.step();
                    self.type_name()?;
                }
                TokenKind::OpenBracket => {
                    self.tokens.step();
                    self.expression()?;
                    if self.tokens.skip_kind(TokenKind::Colon) {
                        self.expression()?;
                    }
                    self.tokens.expect_kind(TokenKind::CloseBracket)?;
                }
                TokenKind::Word => {
                    if let Some(another) = self.word_behind()? {
                        return Ok(another);
                    }
                }
                _ => return Ok(false),
            }
        }
    }

    /// Parses a word after an operand. Returns true if another operand must follow, and `None` if
    /// the expression has ended.
    fn word_behind(&mut self) -> Result<Option<bool>, Why> {
        let tokens = &mut self.tokens;
        if tokens.skip("and") || tokens.skip("or") {
            return Ok(Some(true));
        }
        if tokens.skip("isnull") || tokens.skip("notnull") {
            return Ok(None);
        }
        if tokens.skip("is") {
            tokens.skip("not");
            if tokens.skip("distinct") {
                tokens.expect("from")?;
                return Ok(Some(true));
            }
            let told = ["null", "true", "false", "unknown"]
                .iter()
                .any(|word| tokens.skip(word));
            return if told { Ok(None) } else { Err(tokens.why()) };
        }
        if tokens.is("at") && tokens.is_at(1, "time") && tokens.is_at(2, "zone") {
            for _ in 0..3 {
                tokens.step();
            }
            return Ok(Some(true));
        }
        let negated = tokens.is("not");
        let ahead = usize::from(negated);
        if tokens.is_at(ahead, "like")
            || tokens.is_at(ahead, "ilike")
            || tokens.is_at(ahead, "between")
        {
            for _ in 0..=ahead {
                tokens.step();
            }
            tokens.skip("symmetric");
            return Ok(Some(true));
        }
        if tokens.is_at(ahead, "in") {
            for _ in 0..=ahead {
                tokens.step();
            }
            tokens.expect_kind(TokenKind::Open)?;
            self.list()?;
            self.tokens.expect_kind(TokenKind::Close)?;
            return Ok(None);
        }
        Ok(Some(false))
    }

    /// Parses an operator that is built in for all existing types. ANY or ALL may follow it.
    fn operator(&mut self) -> Result<(), Why> {
        let operator = self.tokens.text(0);
        if self.operators.iter().any(|own| &**own == operator) {
            return Err(self.tokens.why());
        }
        self.tokens.step();
        let quantified = ["any", "some", "all"]
            .iter()
            .any(|word| self.tokens.is(word));
        if quantified && self.tokens.kind(1) == TokenKind::Open {
            self.tokens.step();
        }
        Ok(())
    }

    fn operand(&mut self) -> Result<(), Why> {
        while self.tokens.is("not") || self.tokens.kind(0) == TokenKind::Operator {
            match self.tokens.kind(0) {
                TokenKind::Operator => self.operator()?,
                _ => self.tokens.step(),
            }
        }
        match self.tokens.kind(0) {
            TokenKind::Text if is_moment(self.tokens.text(0).as_bytes()) => {
                self.body.looks_at_clock = true;
                self.tokens.step();
                Ok(())
            }
            TokenKind::Text | TokenKind::Integer | TokenKind::Decimal => {
                self.tokens.step();
                Ok(())
            }
            TokenKind::Open => {
                self.tokens.step();
                self.list()?;
                self.tokens.expect_kind(TokenKind::Close)
            }
            TokenKind::Word => self.word(),
            _ => Err(self.tokens.why()),
        }
    }

    fn word(&mut self) -> Result<(), Why> {
        let at = self.tokens.clone();
        let name = self.tokens.name()?;
        let called = self.tokens.kind(0) == TokenKind::Open;
        self.body.looks_at_clock |= is_clock_word(&name, called);
        match (&*name, self.tokens.kind(0)) {
            ("case", _) => self.case(),
            ("cast", TokenKind::Open) => {
                self.tokens.step();
                self.expression()?;
                self.tokens.expect("as")?;
                self.type_name()?;
                self.tokens.expect_kind(TokenKind::Close)
            }
            ("extract", TokenKind::Open) => {
                self.tokens.step();
                self.tokens.name()?;
                self.tokens.expect("from")?;
                self.expression()?;
                self.tokens.expect_kind(TokenKind::Close)
            }
            ("array", TokenKind::OpenBracket) => {
                self.tokens.step();
                if self.tokens.kind(0) != TokenKind::CloseBracket {
                    self.list()?;
                }
                self.tokens.expect_kind(TokenKind::CloseBracket)
            }
            ("new" | "old", TokenKind::Dot) => {
                self.tokens.step();
                match self.tokens.text(0) {
                    "*" => self.tokens.step(),
                    _ => drop(self.tokens.any_name()?),
                }
                Ok(())
            }
            ("new" | "old", kind) if kind != TokenKind::Open => Ok(()),
            ("pg_catalog", TokenKind::Dot) => {
                self.tokens.step();
                let at = self.tokens.clone();
                let name = self.tokens.name()?;
                self.body.looks_at_clock |= is_clock_word(&name, true);
                match list::may_call(&name) && self.tokens.kind(0) == TokenKind::Open {
                    true => self.arguments(),
                    false => Err(at.why()),
                }
            }
            (_, TokenKind::Open) if is_in(GRAMMAR, &name) => self.arguments(),
            (_, TokenKind::Open) if list::may_call(&name) && !self.shadows.contains(&name) => {
                self.arguments()
            }
            // The precision of a moment.
            (_, TokenKind::Open)
                if name.starts_with("current_time") || name.starts_with("localtime") =>
            {
                self.arguments()
            }
            (_, TokenKind::Open) => Err(at.why()),
            // `interval '1 day'`
            (_, TokenKind::Text) if is_in(TYPES, &name) => {
                self.tokens.step();
                Ok(())
            }
            _ if self.variables.contains(&name) || is_in(WORDS, &name) => Ok(()),
            _ => Err(at.why()),
        }
    }

    fn case(&mut self) -> Result<(), Why> {
        if !self.tokens.is("when") {
            self.expression()?;
        }
        while self.tokens.skip("when") {
            self.expression()?;
            self.tokens.expect("then")?;
            self.expression()?;
        }
        if self.tokens.skip("else") {
            self.expression()?;
        }
        self.tokens.expect("end")
    }

    fn arguments(&mut self) -> Result<(), Why> {
        self.tokens.expect_kind(TokenKind::Open)?;
        if self.tokens.kind(0) != TokenKind::Close {
            self.list()?;
        }
        self.tokens.expect_kind(TokenKind::Close)
    }

    /// Parses a built-in type, with its length, precision or dimensions.
    pub(super) fn type_name(&mut self) -> Result<(), Why> {
        let at = self.tokens.clone();
        let name = self.tokens.name()?;
        if !is_in(TYPES, &name) {
            return Err(at.why());
        }
        match &*name {
            "double" => self.tokens.expect("precision")?,
            "character" | "char" | "bit" => drop(self.tokens.skip("varying")),
            _ => {}
        }
        self.modifiers()?;
        if matches!(&*name, "time" | "timestamp")
            && (self.tokens.is("with") || self.tokens.is("without"))
        {
            self.tokens.step();
            self.tokens.expect("time")?;
            self.tokens.expect("zone")?;
        }
        while self.tokens.skip_kind(TokenKind::OpenBracket) {
            self.tokens.skip_kind(TokenKind::Integer);
            self.tokens.expect_kind(TokenKind::CloseBracket)?;
        }
        Ok(())
    }

    fn modifiers(&mut self) -> Result<(), Why> {
        if !self.tokens.skip_kind(TokenKind::Open) {
            return Ok(());
        }
        loop {
            self.tokens.expect_kind(TokenKind::Integer)?;
            if !self.tokens.skip_comma() {
                return self.tokens.expect_kind(TokenKind::Close);
            }
        }
    }
}
