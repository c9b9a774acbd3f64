//! Parses expressions with the precedence of PostgreSQL's grammar (`a_expr` in `gram.y`). It
//! accepts a part of what the server accepts, with the same meaning, and refuses everything else.

use crate::lex::TokenKind;
use crate::parse::{Form, Node, Parser, Refusal, SUBQUERY, SYNTAX};
use crate::types;

// The precedence of operators, in the order of the grammar's declarations.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const IS: u8 = 4;
const COMPARISON: u8 = 5;
const MATCH: u8 = 6;
const ESCAPE: u8 = 7;
const OTHER: u8 = 8;
const SUM: u8 = 9;
const PRODUCT: u8 = 10;
const POWER: u8 = 11;
const ZONE: u8 = 12;
const COLLATE: u8 = 13;
const SIGN: u8 = 14;
const CAST: u8 = 16;

/// An operator that follows an operand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behind {
    /// An operator with an operand after it.
    Infix,
    /// AND: its operands become a list of conditions.
    And,
    Is,
    /// IN, LIKE, BETWEEN and, with true, their NOT forms.
    Match(bool),
    Zone,
    Collate,
    Cast,
}

impl Parser<'_> {
    /// Parses a whole expression.
    pub(crate) fn expression(&mut self) -> Result<Node, Refusal> {
        self.operand(0)
    }

    /// Parses an expression whose operators all have at least the precedence `least`.
    pub(crate) fn operand(&mut self, least: u8) -> Result<Node, Refusal> {
        self.nested(|parser| parser.climb(least))
    }

    fn climb(&mut self, least: u8) -> Result<Node, Refusal> {
        let mut left = self.prefix(least)?;
        // The precedence of the last operator, if no other of that precedence may follow.
        let mut lonely = None;
        while let Some((binding, behind)) = self.behind()? {
            if binding < least {
                break;
            }
            if lonely == Some(binding) {
                return Err(SYNTAX);
            }
            let alone;
            (left, alone) = self.continued(left, binding, behind)?;
            lonely = alone.then_some(binding);
        }
        Ok(left)
    }

    /// Parses the beginning of an expression: NOT, a sign, or a primary.
    fn prefix(&mut self, least: u8) -> Result<Node, Refusal> {
        let from = self.at;
        let binding = if self.is_word(0, "not") {
            NOT
        } else if self.is_operator(0, "-") || self.is_operator(0, "+") {
            SIGN
        } else {
            return self.primary();
        };
        if binding < least {
            return Err(SYNTAX);
        }
        self.at += 1;
        let inner = self.operand(binding)?;
        Ok(self.node(from, inner.columns))
    }

    /// Makes a node of the tokens from `from` up to the current one.
    pub(crate) fn node(&self, from: usize, columns: bool) -> Node {
        Node {
            from,
            to: self.at,
            columns,
            form: Form::Other,
        }
    }

    /// Returns the next operator with its precedence.
    fn behind(&self) -> Result<Option<(u8, Behind)>, Refusal> {
        Ok(match self.kind(0) {
            TokenKind::Operator => Some((binding(self.slice(0))?, Behind::Infix)),
            TokenKind::Cast => Some((CAST, Behind::Cast)),
            TokenKind::Word => self.behind_word(),
            _ => None,
        })
    }

    fn behind_word(&self) -> Option<(u8, Behind)> {
        let word = self.slice(0);
        let is = |other: &str| word.eq_ignore_ascii_case(other);
        let matches = |ahead| {
            ["in", "like", "ilike", "between"]
                .iter()
                .any(|other| self.is_word(ahead, other))
        };
        match word.len() {
            2 if is("or") => Some((OR, Behind::Infix)),
            2 if is("is") => Some((IS, Behind::Is)),
            3 if is("and") => Some((AND, Behind::And)),
            3 if is("not") && matches(1) => Some((MATCH, Behind::Match(true))),
            2 if is("at") => Some((ZONE, Behind::Zone)),
            7 if is("collate") => Some((COLLATE, Behind::Collate)),
            _ if matches(0) => Some((MATCH, Behind::Match(false))),
            _ => None,
        }
    }

    /// Parses what follows the left operand. Also returns true if no operator of the same
    /// precedence may follow.
    fn continued(
        &mut self,
        left: Node,
        binding: u8,
        behind: Behind,
    ) -> Result<(Node, bool), Refusal> {
        let (from, mut columns) = (left.from, left.columns);
        let mut lonely = false;
        match behind {
            Behind::And => return Ok((self.conjunction(left)?, false)),
            Behind::Infix => {
                let quantified = ["any", "some", "all"].iter().any(|q| self.is_word(1, q));
                if quantified && self.kind(0) == TokenKind::Operator {
                    let equal = self.is_operator(0, "=") && !self.is_word(1, "all");
                    let (right, only) = self.quantified()?;
                    columns |= right;
                    if let Some(only) = only.filter(|_| equal) {
                        return Ok((self.equal(left, only), lonely));
                    }
                } else {
                    let equal = self.is_operator(0, "=");
                    self.at += 1;
                    let right = self.operand(binding + 1)?;
                    columns |= right.columns;
                    lonely = binding == COMPARISON;
                    if equal {
                        return Ok((self.equal(left, right), lonely));
                    }
                }
            }
            Behind::Is => {
                let right = self.is()?;
                lonely = right.is_some();
                columns |= right.unwrap_or_default();
            }
            Behind::Match(not) if self.is_word(usize::from(not), "in") => {
                self.at += 1 + usize::from(not);
                let mut all = self.parenthesized_list()?;
                columns |= all.iter().any(|node| node.columns);
                if !not
                    && all.len() == 1
                    && let Some(only) = all.pop().filter(|only| !self.is_null(only))
                {
                    return Ok((self.equal(left, only), false));
                }
            }
            Behind::Match(not) => {
                self.at += usize::from(not);
                columns |= self.matched()?;
                lonely = true;
            }
            Behind::Zone => {
                if !self.words(&["at", "time", "zone"]) {
                    return Err(SYNTAX);
                }
                columns |= self.operand(ZONE + 1)?.columns;
            }
            Behind::Collate => {
                self.at += 1;
                types::any_name(self)?;
            }
            Behind::Cast => {
                self.at += 1;
                types::type_name(self)?;
            }
        }
        Ok((self.node(from, columns), lonely))
    }

    fn conjunction(&mut self, left: Node) -> Result<Node, Refusal> {
        self.at += 1;
        let right = self.operand(AND + 1)?;
        let (from, columns) = (left.from, left.columns || right.columns);
        // `(a AND b) AND c` has the meaning of `a AND b AND c`. The conditions in parentheses are
        // listed one by one.
        let mut all = match left.form {
            Form::And(all) => all,
            _ => vec![left],
        };
        match right.form {
            Form::And(more) => all.extend(more),
            _ => all.push(right),
        }
        Ok(Node {
            from,
            to: self.at,
            columns,
            form: Form::And(all),
        })
    }

    /// Makes the node `left = right` of the tokens up to the current one.
    fn equal(&self, left: Node, right: Node) -> Node {
        Node {
            from: left.from,
            to: self.at,
            columns: left.columns || right.columns,
            form: Form::Equal(Box::new((left, right))),
        }
    }

    /// Returns true for the bare word NULL: `transform_null_equals` changes `= NULL` to IS NULL,
    /// and no other form.
    fn is_null(&self, node: &Node) -> bool {
        self.text_of(node.from, node.to)
            .eq_ignore_ascii_case("null")
    }

    /// Parses `= ANY (expression)`. Returns true if the expression names columns, and the element
    /// of `ARRAY[element]`.
    fn quantified(&mut self) -> Result<(bool, Option<Node>), Refusal> {
        self.at += 2;
        self.expect(TokenKind::Open)?;
        let array = self.expression()?;
        self.expect(TokenKind::Close)?;
        let columns = array.columns;
        Ok((columns, self.only_element(array)))
    }

    /// Returns the element of `ARRAY[element]`, if its type is the same there as after `=`. A
    /// string without a type is a text in an array, and has the left side's type after `=`.
    fn only_element(&self, array: Node) -> Option<Node> {
        let Form::Array(only) = array.form else {
            return None;
        };
        // The array may stand in parentheses, the element may begin with one.
        let is_bare = only.from == array.from + 2;
        let first = self.kind_at(only.from);
        let has_type = !first.is_string() && first != TokenKind::Open;
        let begins_with_null = self.text_of(only.from, only.from + 1);
        let is_null = begins_with_null.eq_ignore_ascii_case("null");
        (is_bare && has_type && !is_null).then_some(*only)
    }

    /// Parses `(first, second, ..)`.
    fn parenthesized_list(&mut self) -> Result<Vec<Node>, Refusal> {
        self.expect(TokenKind::Open)?;
        let all = self.list(Self::expression)?;
        self.expect(TokenKind::Close)?;
        Ok(all)
    }

    /// Parses what follows IS. Returns `None` for NULL, TRUE, FALSE and UNKNOWN, and otherwise true
    /// if the operand of DISTINCT FROM names columns.
    fn is(&mut self) -> Result<Option<bool>, Refusal> {
        self.at += 1;
        self.word("not");
        if self.words(&["distinct", "from"]) {
            return Ok(Some(self.operand(IS + 1)?.columns));
        }
        if ["null", "true", "false", "unknown"]
            .iter()
            .any(|word| self.word(word))
        {
            return Ok(None);
        }
        Err(SYNTAX)
    }

    /// Parses LIKE and BETWEEN with their operands.
    fn matched(&mut self) -> Result<bool, Refusal> {
        if self.word("between") {
            self.word("symmetric");
            let low = self.narrow_operand()?;
            self.expect_word("and")?;
            return Ok(low.columns | self.operand(MATCH + 1)?.columns);
        }
        if ["any", "some", "all"].iter().any(|q| self.is_word(1, q)) {
            return Ok(self.quantified()?.0);
        }
        self.at += 1;
        let mut columns = self.operand(ESCAPE + 1)?.columns;
        if self.word("escape") {
            columns |= self.operand(ESCAPE + 1)?.columns;
        }
        Ok(columns)
    }

    /// Parses an operand where the grammar allows only `b_expr`: no logic, no AT TIME ZONE, no
    /// COLLATE.
    pub(crate) fn narrow_operand(&mut self) -> Result<Node, Refusal> {
        let node = self.operand(OTHER)?;
        let end = self.at;
        self.at = node.from;
        let wide =
            (0..end - node.from).any(|n| self.is_word(n, "at") || self.is_word(n, "collate"));
        self.at = end;
        if wide { Err(SYNTAX) } else { Ok(node) }
    }

    /// Parses `(expression)` or `(first, second, ..)`.
    pub(crate) fn parenthesis(&mut self) -> Result<Node, Refusal> {
        let from = self.at;
        self.expect(TokenKind::Open)?;
        if ["select", "with", "values", "table"]
            .iter()
            .any(|word| self.is_word(0, word))
        {
            return Err(SUBQUERY);
        }
        let mut all = self.list(Self::expression)?;
        self.expect(TokenKind::Close)?;
        if matches!(self.kind(0), TokenKind::Dot | TokenKind::OpenBracket) {
            return Err(SYNTAX);
        }
        let (to, columns) = (self.at, all.iter().any(|node| node.columns));
        let form = match all.pop() {
            Some(only) if all.is_empty() => only.form,
            _ => Form::Other,
        };
        // The parentheses do not change a condition.
        Ok(Node {
            from,
            to,
            columns,
            form,
        })
    }
}

/// Returns the precedence of an operator.
fn binding(operator: &str) -> Result<u8, Refusal> {
    Ok(match operator {
        "=" | "<" | ">" | "<=" | ">=" | "<>" | "!=" => COMPARISON,
        "+" | "-" => SUM,
        "*" | "/" | "%" => PRODUCT,
        "^" => POWER,
        // This names an argument of a function. Newer servers give `=>` another meaning elsewhere.
        "=>" => return Err("an argument with a name"),
        _ => OTHER,
    })
}
