//! The words that decide whether a literal may be lifted.

/// Keywords that decide whether literals are lifted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// AND, OR, NOT, WHEN, THEN, ELSE, LIKE, ILIKE, BETWEEN: an expression may follow.
    Before,
    And,
    Or,
    Then,
    Else,
    When,
    End,
    On,
    Conflict,
    Do,
    As,
    Where,
    Values,
    Set,
    Array,
    Returning,
    Null,
    True,
    False,
    /// PRECISION, VARYING, WITH, TIME ..: these continue the name of a type.
    TypePart,
    /// INTERVAL, and a word that may be the schema before it.
    Interval,
    Other,
}

/// Classifies a word.
pub(super) fn word(text: &[u8]) -> Word {
    let known: &[(&[u8], Word)] = match text.len() {
        2 => &[
            (b"as", Word::As),
            (b"on", Word::On),
            (b"or", Word::Or),
            (b"do", Word::Do),
        ],
        3 => &[
            (b"and", Word::And),
            (b"set", Word::Set),
            (b"not", Word::Before),
            (b"end", Word::End),
        ],
        4 => &[
            (b"null", Word::Null),
            (b"true", Word::True),
            (b"time", Word::TypePart),
            (b"when", Word::When),
            (b"then", Word::Then),
            (b"else", Word::Else),
            (b"like", Word::Before),
            (b"with", Word::TypePart),
            (b"zone", Word::TypePart),
        ],
        5 => &[
            (b"where", Word::Where),
            (b"false", Word::False),
            (b"array", Word::Array),
            (b"ilike", Word::Before),
        ],
        6 => &[(b"values", Word::Values)],
        7 => &[
            (b"between", Word::Before),
            (b"varying", Word::TypePart),
            (b"without", Word::TypePart),
        ],
        8 => &[(b"conflict", Word::Conflict), (b"interval", Word::Interval)],
        9 => &[
            (b"returning", Word::Returning),
            (b"precision", Word::TypePart),
        ],
        10 => &[(b"pg_catalog", Word::Interval)],
        _ => return Word::Other,
    };
    known
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(text))
        .map_or(Word::Other, |(_, word)| *word)
}
