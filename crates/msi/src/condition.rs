//! Conditions of Windows Installer: `VersionNT >= 603 AND NOT Installed`.
//!
//! The grammar and precedence are those of Microsoft's page "Conditional Statement Syntax".

use std::cmp::Ordering;

/// Maximum depth of parentheses.
const DEPTH: usize = 64;

/// What conditions ask.
pub(crate) trait Symbols {
    /// Value of a symbol: a property, `%VARIABLE`, or the state of a feature or component with its
    /// prefix `&`, `!`, `$` or `?`. Empty if it does not exist.
    fn value(&self, symbol: &str) -> String;
}

/// Evaluates a condition; an empty one is true. `None` if it is invalid.
pub(crate) fn evaluate(condition: &str, symbols: &dyn Symbols) -> Option<bool> {
    let tokens = tokenize(condition)?;
    if tokens.is_empty() {
        return Some(true);
    }
    let mut parser = Parser {
        tokens: &tokens,
        at: 0,
        depth: 0,
        symbols,
    };
    let value = parser.operators(0)?;
    (parser.at == tokens.len()).then_some(value)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    Open,
    Close,
    Word(Operator),
    Symbol(String),
    Text(String),
    Number(i32),
    Compare(Comparison, bool),
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

pub(crate) fn tokenize(text: &str) -> Option<Vec<Token>> {
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
                    (Token::Text(rest[1..end].to_owned()), end + 1)
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
        Token::Number(number)
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
        operator.map_or_else(|| Token::Symbol(word.to_owned()), Token::Word)
    };
    Some((token, length))
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
    symbols: &'a dyn Symbols,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Operand {
    Text(String),
    Number(i32),
}

impl Parser<'_> {
    fn eat(&mut self, token: &Token) -> bool {
        let found = self.tokens.get(self.at) == Some(token);
        self.at += usize::from(found);
        found
    }

    /// Operators of a level and the stronger ones.
    fn operators(&mut self, level: usize) -> Option<bool> {
        let Some(operator) = BINARY.get(level) else {
            return self.negation();
        };
        let mut left = self.operators(level + 1)?;
        while self.eat(&Token::Word(*operator)) {
            let right = self.operators(level + 1)?;
            left = match operator {
                Operator::Imp => !left || right,
                Operator::Eqv => left == right,
                Operator::Xor => left != right,
                Operator::Or => left || right,
                Operator::And | Operator::Not => left && right,
            };
        }
        Some(left)
    }

    fn negation(&mut self) -> Option<bool> {
        let mut negated = false;
        while self.eat(&Token::Word(Operator::Not)) {
            negated = !negated;
        }
        Some(self.comparison()? != negated)
    }

    fn comparison(&mut self) -> Option<bool> {
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
        let Some(Token::Compare(comparison, ignores_case)) = self.tokens.get(self.at) else {
            return Some(match left {
                Operand::Text(text) => !text.is_empty(),
                Operand::Number(number) => number != 0,
            });
        };
        self.at += 1;
        let right = self.operand()?;
        Some(compare(&left, *comparison, &right, *ignores_case))
    }

    fn operand(&mut self) -> Option<Operand> {
        let operand = match self.tokens.get(self.at)? {
            Token::Symbol(name) => Operand::Text(self.symbols.value(name)),
            Token::Text(text) => Operand::Text(text.clone()),
            Token::Number(number) => Operand::Number(*number),
            _ => return None,
        };
        self.at += 1;
        Some(operand)
    }
}

/// Compares two operands. A text and a number are unequal, unless the text is a number.
fn compare(left: &Operand, comparison: Comparison, right: &Operand, ignores_case: bool) -> bool {
    let number = |text: &str| text.trim().parse::<i32>().ok();
    match (left, right) {
        (Operand::Number(left), Operand::Number(right)) => numbers(*left, comparison, *right),
        (Operand::Text(left), Operand::Number(right)) => match number(left) {
            Some(left) => numbers(left, comparison, *right),
            None => comparison == Comparison::Unequal,
        },
        (Operand::Number(left), Operand::Text(right)) => match number(right) {
            Some(right) => numbers(*left, comparison, right),
            None => comparison == Comparison::Unequal,
        },
        (Operand::Text(left), Operand::Text(right)) if ignores_case => {
            texts(&left.to_lowercase(), comparison, &right.to_lowercase())
        }
        (Operand::Text(left), Operand::Text(right)) => texts(left, comparison, right),
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

    struct Known;

    impl Symbols for Known {
        fn value(&self, symbol: &str) -> String {
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
            assert_eq!(evaluate(condition, &Known), Some(value), "{condition}");
        }
    }

    #[test]
    fn invalid_conditions_have_no_value() {
        for condition in ["(", "a b", "AND", "a =", "\"a", "a @ b", &"(".repeat(9999)] {
            assert_eq!(evaluate(condition, &Known), None, "{condition}");
        }
    }
}
