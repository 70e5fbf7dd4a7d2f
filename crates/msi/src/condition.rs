//! Conditions of Windows Installer: `VersionNT >= 603 AND NOT Installed`. Those of Burn have the same
//! grammar.
//!
//! The grammar and precedence are those of Microsoft's page "Conditional Statement Syntax".

use std::cell::Cell;
use std::cmp::Ordering;

/// Maximum depth of parentheses.
const DEPTH: usize = 64;

/// True, false or unknown.
pub(crate) type Logic = Option<bool>;

/// The truth of an operand, or of its comparison with another; true there ignores the case. `None`
/// if it is invalid.
pub(crate) type Truth<'a> =
    dyn Fn(&Operand, Option<(Comparison, bool, &Operand)>) -> Option<Logic> + 'a;

/// Evaluates a condition; an empty one is true. `None` if it is invalid.
///
/// `value` is that of a symbol: a property, `%VARIABLE`, or the state of a feature or component
/// with its prefix `&`, `!`, `$` or `?`; empty if it does not exist.
pub(crate) fn evaluate(condition: &str, value: &dyn Fn(&str) -> String) -> Option<bool> {
    let read = |operand: &Operand| match operand {
        Operand::Symbol(name) => Value::Symbol(value(name)),
        Operand::Text(text) => Value::Text(text.clone()),
        Operand::Number(number) => Value::Number(*number),
    };
    decide(condition, &BINARY, &|left, comparison| {
        let is_true = match (read(left), comparison) {
            (Value::Symbol(text) | Value::Text(text), None) => !text.is_empty(),
            (Value::Number(number), None) => number != 0,
            (left, Some((comparison, ignores_case, right))) => {
                compare(&left, comparison, &read(right), ignores_case)
            }
        };
        Some(Some(is_true))
    })
}

/// True if a condition has a symbol that is so.
pub(crate) fn asks(condition: &str, is_so: &dyn Fn(&str) -> bool) -> bool {
    let is_asked = Cell::new(false);
    evaluate(condition, &|symbol| {
        is_asked.set(is_asked.get() || is_so(symbol));
        String::new()
    });
    is_asked.get()
}

/// Evaluates a condition with some binary operators, the weakest first. `None` if it is invalid or
/// unknown.
pub(crate) fn decide(condition: &str, binary: &[Operator], truth: &Truth<'_>) -> Option<bool> {
    let tokens = tokenize(condition)?;
    if tokens.is_empty() {
        return Some(true);
    }
    let mut parser = Parser {
        tokens: &tokens,
        at: 0,
        depth: 0,
        binary,
        truth,
    };
    let value = parser.operators(0)?;
    value.filter(|_| parser.at == tokens.len())
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Open,
    Close,
    Word(Operator),
    Operand(Operand),
    Compare(Comparison, bool),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    Symbol(String),
    Text(String),
    Number(i32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Not,
    Imp,
    Eqv,
    Xor,
    Or,
    And,
}

impl Operator {
    /// The result for two values; one that is known may decide alone.
    fn of(self, left: Logic, right: Logic) -> Logic {
        let not = |value: Logic| value.map(|it| !it);
        match self {
            Self::Or if left == Some(true) || right == Some(true) => Some(true),
            Self::Or => Some(left? || right?),
            Self::And | Self::Not => not(Self::Or.of(not(left), not(right))),
            Self::Imp => Self::Or.of(not(left), right),
            Self::Xor => Some(left? != right?),
            Self::Eqv => Some(left? == right?),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Unequal,
    Less,
    Greater,
    AtMost,
    AtLeast,
    Contains,
    Starts,
    Ends,
}

/// Longer ones first.
const COMPARISONS: [(&str, Comparison); 9] = [
    ("<>", Comparison::Unequal),
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("><", Comparison::Contains),
    ("<<", Comparison::Starts),
    (">>", Comparison::Ends),
    ("=", Comparison::Equal),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

/// Binary operators, the weakest first.
const BINARY: [Operator; 5] = [
    Operator::Imp,
    Operator::Eqv,
    Operator::Xor,
    Operator::Or,
    Operator::And,
];

fn tokenize(text: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (ignores_case, operator) = match rest.strip_prefix('~') {
            Some(operator) => (true, operator),
            None => (false, rest),
        };
        let comparison = COMPARISONS
            .iter()
            .find(|(sign, _)| operator.starts_with(sign));
        let (token, length) = if let Some((sign, comparison)) = comparison {
            let length = sign.len() + usize::from(ignores_case);
            (Token::Compare(*comparison, ignores_case), length)
        } else {
            match first {
                '(' => (Token::Open, 1),
                ')' => (Token::Close, 1),
                '"' => {
                    let end = rest[1..].find('"')? + 1;
                    let text = rest[1..end].to_owned();
                    (Token::Operand(Operand::Text(text)), end + 1)
                }
                _ => word(rest)?,
            }
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    Some(tokens)
}

fn word(text: &str) -> Option<(Token, usize)> {
    let prefixed = text.starts_with(['%', '$', '?', '&', '!']);
    let from = usize::from(prefixed);
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    let length = text[from..]
        .find(|c| !is_part(c))
        .unwrap_or(text.len() - from);
    let length = from + length;
    let word = &text[..length];
    if length == from {
        return None;
    }
    let token = if let Ok(number) = word.parse() {
        Token::Operand(Operand::Number(number))
    } else {
        let operator = match word.to_ascii_uppercase().as_str() {
            "NOT" => Some(Operator::Not),
            "AND" => Some(Operator::And),
            "OR" => Some(Operator::Or),
            "XOR" => Some(Operator::Xor),
            "EQV" => Some(Operator::Eqv),
            "IMP" => Some(Operator::Imp),
            _ => None,
        };
        let symbol = || Token::Operand(Operand::Symbol(word.to_owned()));
        operator.map_or_else(symbol, Token::Word)
    };
    Some((token, length))
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
    binary: &'a [Operator],
    truth: &'a Truth<'a>,
}

impl<'a> Parser<'a> {
    fn eat(&mut self, token: &Token) -> bool {
        let found = self.tokens.get(self.at) == Some(token);
        self.at += usize::from(found);
        found
    }

    /// Operators of a level and the stronger ones; the outer `None` is an invalid condition.
    fn operators(&mut self, level: usize) -> Option<Logic> {
        let Some(&operator) = self.binary.get(level) else {
            return self.negation();
        };
        let mut left = self.operators(level + 1)?;
        while self.eat(&Token::Word(operator)) {
            left = operator.of(left, self.operators(level + 1)?);
        }
        Some(left)
    }

    fn negation(&mut self) -> Option<Logic> {
        let mut negated = false;
        while self.eat(&Token::Word(Operator::Not)) {
            negated = !negated;
        }
        let value = self.comparison()?;
        Some(value.map(|value| value != negated))
    }

    fn comparison(&mut self) -> Option<Logic> {
        if self.eat(&Token::Open) {
            self.depth += 1;
            if self.depth > DEPTH {
                return None;
            }
            let value = self.operators(0)?;
            self.depth -= 1;
            return self.eat(&Token::Close).then_some(value);
        }
        let left = self.operand()?;
        let Some(&Token::Compare(comparison, ignores_case)) = self.tokens.get(self.at) else {
            return (self.truth)(left, None);
        };
        self.at += 1;
        let right = self.operand()?;
        (self.truth)(left, Some((comparison, ignores_case, right)))
    }

    fn operand(&mut self) -> Option<&'a Operand> {
        let Token::Operand(operand) = self.tokens.get(self.at)? else {
            return None;
        };
        self.at += 1;
        Some(operand)
    }
}

enum Value {
    /// The text of a symbol, which may be a number.
    Symbol(String),
    Text(String),
    Number(i32),
}

impl Value {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Symbol(text) | Self::Text(text) => Some(text),
            Self::Number(_) => None,
        }
    }

    /// A number, or a text of digits after at most a minus.
    fn number(&self) -> Option<i32> {
        match self {
            Self::Symbol(text) | Self::Text(text) if text.starts_with('+') => None,
            Self::Symbol(text) | Self::Text(text) => text.parse().ok(),
            Self::Number(number) => Some(*number),
        }
    }
}

/// Compares two values. A symbol makes texts numbers, if both are; else a text and a number are
/// unequal.
fn compare(left: &Value, comparison: Comparison, right: &Value, ignores_case: bool) -> bool {
    let values = [left, right];
    let has_symbol = values.iter().any(|it| matches!(it, Value::Symbol(_)));
    let has_literal = values.iter().any(|it| matches!(it, Value::Text(_)));
    if (has_symbol || !has_literal)
        && let (Some(left), Some(right)) = (left.number(), right.number())
    {
        return numbers(left, comparison, right);
    }
    match (left.text(), right.text()) {
        (Some(left), Some(right)) if ignores_case => {
            texts(&left.to_lowercase(), comparison, &right.to_lowercase())
        }
        (Some(left), Some(right)) => texts(left, comparison, right),
        _ => comparison == Comparison::Unequal,
    }
}

fn numbers(left: i32, comparison: Comparison, right: i32) -> bool {
    match comparison {
        // Common bits, the same high word, the same low word.
        Comparison::Contains => left & right != 0,
        Comparison::Starts => left >> 16 == right,
        Comparison::Ends => left & 0xffff == right,
        _ => ordered(left.cmp(&right), comparison),
    }
}

fn texts(left: &str, comparison: Comparison, right: &str) -> bool {
    match comparison {
        // Windows finds nothing in an empty text, not even nothing.
        Comparison::Contains | Comparison::Starts | Comparison::Ends if left.is_empty() => false,
        Comparison::Contains => left.contains(right),
        Comparison::Starts => left.starts_with(right),
        Comparison::Ends => left.ends_with(right),
        _ => ordered(left.cmp(right), comparison),
    }
}

pub(crate) fn ordered(order: Ordering, comparison: Comparison) -> bool {
    match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::Unequal => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::Greater => order.is_gt(),
        Comparison::AtMost => order.is_le(),
        Comparison::AtLeast => order.is_ge(),
        Comparison::Contains | Comparison::Starts | Comparison::Ends => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(symbol: &str) -> String {
        match symbol {
            "VersionNT" => "603",
            "Name" => "Contoso Server",
            "Version" => "5.00",
            "&Main" => "3",
            "%TEMP" => r"C:\Temp",
            _ => "",
        }
        .to_owned()
    }

    #[test]
    fn conditions_have_the_values_of_the_documentation() {
        for (condition, value) in [
            ("", true),
            ("VersionNT", true),
            ("Missing", false),
            ("NOT Missing", true),
            ("VersionNT >= 601", true),
            ("VersionNT>=601 AND VersionNT < 603", false),
            ("(Missing OR VersionNT=603) AND NOT Missing", true),
            ("Name = \"contoso server\"", false),
            ("Name ~= \"contoso server\"", true),
            ("Name >< \"Ser\"", true),
            ("Name << \"Con\"", true),
            ("Name >> \"ver\"", true),
            ("Name ~>> \"VER\"", true),
            ("Missing <> 1", true),
            ("Missing = 0", false),
            ("Name < 5", false),
            ("Version >= \"5\"", true),
            ("&Main = 3", true),
            ("%TEMP = \"C:\\Temp\"", true),
            ("1 OR 0 AND 0", true),
            ("Missing IMP VersionNT", true),
            ("1 XOR 1", false),
            ("1 EQV 0", false),
            ("6 >< 2", true),
            ("65537 << 1", true),
        ] {
            assert_eq!(evaluate(condition, &known), Some(value), "{condition}");
        }
    }

    /// Results of wine, most by its tests, which pass on Windows.
    #[test]
    fn a_symbol_makes_texts_numbers() {
        for (one, condition, two, value) in [
            ("7", "one <= two", "50", true),
            ("7", "one <= two", "50val", false),
            ("2", "one <= two", "50val", true),
            ("1234", "one >< two", "1", false),
            ("1234", "one << two", "1", false),
            ("1234", "one >> two", "4", false),
            ("one 1234", "one >> two", "4", true),
            ("", "one >< two", "", false),
            ("hi", "one >< two", "", true),
            ("5", "one < 12", "", true),
            ("5", "one = \"5\"", "", true),
            ("5", "one > \"10\"", "", false),
            ("-0", "one = 0", "", true),
            ("0000000000000", "one = 0", "", true),
            ("0 ", "one = 0", "", false),
            ("+0", "one = 0", "", false),
            ("0 ", "one <> 0", "", true),
            ("", "1 = \"1\"", "", false),
            ("", "1 <> \"1\"", "", true),
            ("", "100 > \"0\"", "", false),
            ("", "\"100\" < \"21\"", "", true),
            ("", "\"\" <> 3", "", true),
        ] {
            let value_of = |symbol: &str| match symbol {
                "one" => one.to_owned(),
                _ => two.to_owned(),
            };
            let found = evaluate(condition, &value_of);
            assert_eq!(found, Some(value), "{one:?} {condition} {two:?}");
        }
    }

    #[test]
    fn invalid_conditions_have_no_value() {
        for condition in ["(", "a b", "AND", "a =", "\"a", "a @ b", &"(".repeat(9999)] {
            assert_eq!(evaluate(condition, &known), None, "{condition}");
        }
    }
}
