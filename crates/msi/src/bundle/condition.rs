//! Conditions of Burn: `VersionNT = v6.3 AND VersionNT64`.
//!
//! Only what is certain of every Windows image is known: Windows 10 or newer, 64 bits.

use std::cmp::Ordering;

/// Maximum depth of parentheses.
const DEPTH: usize = 32;

/// Evaluates a condition; an empty one is true. `None` if it is invalid, or depends on more than
/// what is known.
pub(super) fn evaluate(condition: &str) -> Option<bool> {
    let tokens = tokens(condition)?;
    if tokens.is_empty() {
        return Some(true);
    }
    let mut parser = Parser {
        tokens: &tokens,
        at: 0,
        depth: 0,
    };
    let value = parser.any()?;
    value.filter(|_| parser.at == tokens.len())
}

/// True, false or unknown.
type Logic = Option<bool>;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Open,
    Close,
    Compare(&'static str),
    Word(String),
    Number(i64),
    Version(Vec<u32>),
    Text,
}

fn tokens(condition: &str) -> Option<Vec<Token>> {
    let mut found = Vec::new();
    let mut rest = condition.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            '(' => (Token::Open, 1),
            ')' => (Token::Close, 1),
            '"' => (Token::Text, rest[1..].find('"')? + 2),
            '<' | '>' | '=' | '~' => {
                let known = ["<>", "<=", ">=", "=", "<", ">"];
                let known = known.into_iter().find(|known| rest.starts_with(known))?;
                (Token::Compare(known), known.len())
            }
            _ => {
                let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
                let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                (
                    word(rest.get(..length).filter(|it| !it.is_empty())?)?,
                    length,
                )
            }
        };
        found.push(token);
        rest = rest[length..].trim_start();
    }
    Some(found)
}

fn word(text: &str) -> Option<Token> {
    let version = text.strip_prefix(['v', 'V']);
    if let Some(version) = version.filter(|it| it.starts_with(|c: char| c.is_ascii_digit())) {
        let parts = version.split('.').map(|part| part.parse().ok());
        return parts.collect::<Option<Vec<u32>>>().map(Token::Version);
    }
    if text.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return text.parse().ok().map(Token::Number);
    }
    Some(Token::Word(text.to_ascii_lowercase()))
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn eat(&mut self, word: &str) -> bool {
        let is_next = matches!(self.tokens.get(self.at), Some(Token::Word(own)) if own == word);
        self.at += usize::from(is_next);
        is_next
    }

    /// `A OR B`; the outer `None` is an invalid condition.
    fn any(&mut self) -> Option<Logic> {
        let mut value = self.all()?;
        while self.eat("or") {
            value = match (value, self.all()?) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            };
        }
        Some(value)
    }

    /// `A AND B`
    fn all(&mut self) -> Option<Logic> {
        let mut value = self.one()?;
        while self.eat("and") {
            value = match (value, self.one()?) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
        }
        Some(value)
    }

    fn one(&mut self) -> Option<Logic> {
        if self.depth == DEPTH {
            return None;
        }
        self.depth += 1;
        let value = if self.eat("not") {
            self.one()?.map(|value| !value)
        } else if self.tokens.get(self.at) == Some(&Token::Open) {
            self.at += 1;
            let value = self.any()?;
            if self.tokens.get(self.at) != Some(&Token::Close) {
                return None;
            }
            self.at += 1;
            value
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Some(value)
    }

    fn comparison(&mut self) -> Option<Logic> {
        let left = self.operand()?;
        let Some(Token::Compare(operator)) = self.tokens.get(self.at) else {
            return Some(match left {
                Token::Word(name) => is_set(&name),
                Token::Number(number) => Some(number != 0),
                _ => None,
            });
        };
        self.at += 1;
        let right = self.operand()?;
        let (order, operator) = match (&left, &right) {
            (Token::Word(name), other) => (compare(name, other), *operator),
            (other, Token::Word(name)) => (compare(name, other), mirrored(operator)),
            _ => (None, *operator),
        };
        Some(order.map(|order| match operator {
            "=" => order == Ordering::Equal,
            "<>" => order != Ordering::Equal,
            "<" => order == Ordering::Less,
            ">" => order == Ordering::Greater,
            "<=" => order != Ordering::Greater,
            _ => order != Ordering::Less,
        }))
    }

    fn operand(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        match token {
            Token::Word(name) if matches!(name.as_str(), "and" | "or" | "not") => None,
            Token::Open | Token::Close | Token::Compare(_) => None,
            token => Some(token.clone()),
        }
    }
}

fn mirrored(operator: &str) -> &'static str {
    match operator {
        "<" => ">",
        ">" => "<",
        "<=" => ">=",
        ">=" => "<=",
        "<>" => "<>",
        _ => "=",
    }
}

/// Whether a variable is neither missing nor zero.
fn is_set(name: &str) -> Logic {
    match name {
        "versionnt" | "versionnt64" => Some(true),
        "servicepacklevel" => Some(false),
        _ => None,
    }
}

/// Compares a variable. The version of Windows is 10.0; whether it has a build depends on the
/// version of Burn.
fn compare(name: &str, other: &Token) -> Option<Ordering> {
    match (name, other) {
        ("versionnt" | "versionnt64", Token::Version(version)) => {
            let part = |at: usize| version.get(at).copied().unwrap_or_default();
            match (10, 0).cmp(&(part(0), part(1))) {
                Ordering::Equal => None,
                order => Some(order),
            }
        }
        // Windows 10 and newer have no service packs.
        ("servicepacklevel", Token::Number(number)) => Some(0.cmp(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_image_has_is_known() {
        for (condition, expected) in [
            ("", true),
            ("VersionNT64", true),
            ("NOT VersionNT64", false),
            ("VersionNT = v6.3 AND VersionNT64", false),
            ("VersionNT >= v6.1", true),
            ("v6.1 < VersionNT", true),
            ("VersionNT > v11.0 OR VersionNT > v6.0.6001", true),
            (
                "(VersionNT > v6.1) OR (VersionNT = v6.1 AND ServicePackLevel >= 1)",
                true,
            ),
            ("ServicePackLevel < 1", true),
            ("NOT (VersionNT = v6.2 OR ServicePackLevel)", true),
            // What is unknown does not matter.
            ("VersionNT = v6.0 AND Other = \"x\"", false),
            ("VersionNT64 OR Other", true),
        ] {
            assert_eq!(evaluate(condition), Some(expected), "{condition}");
        }
    }

    #[test]
    fn anything_else_is_not() {
        for condition in [
            "VersionNT >= v10.0.17763",
            "VersionNT = v10.0",
            "Other",
            "NOT Other",
            "VersionNT64 AND Other",
            "VersionNT = 603",
            "VersionNT ~= v6.1",
            "(VersionNT64",
            "VersionNT64)",
            "AND",
            "VersionNT64 VersionNT",
            "\"a",
            "VersionNT >",
            "VersionNT64 AND",
            "vx",
            "[x]",
            "é",
        ] {
            assert_eq!(evaluate(condition), None, "{condition}");
        }
        assert_eq!(evaluate(&"(".repeat(100_000)), None);
        assert_eq!(evaluate(&"NOT ".repeat(100_000)), None);
    }
}
