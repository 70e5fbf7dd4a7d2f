//! PowerShell's operators on values.

use super::super::machine::is_like;
use super::super::tools;
use super::super::trouble::Trouble;
use super::patterns;
use super::value::{Value, bounded};

pub(super) fn unary(operator: &str, value: Value) -> Result<Value, Trouble> {
    match (operator, value) {
        (
            "not",
            Value::Matches {
                path,
                algorithm,
                digest,
                if_equal,
            },
        ) => Ok(Value::Matches {
            path,
            algorithm,
            digest,
            if_equal: !if_equal,
        }),
        ("not", value) => Ok(Value::Bool(!value.truth()?)),
        ("-", Value::Number(number)) => Ok(Value::Number(-number)),
        ("join", value) => bounded(value.texts()?.concat()),
        ("split", value) => {
            let text = value.text()?;
            Ok(Value::of(
                text.split_whitespace().map(Value::text_value).collect(),
            ))
        }
        (operator, _) => Err(Trouble::unclear(format!(
            "{operator} is not understood here"
        ))),
    }
}

pub(super) fn binary(operator: &str, left: Value, right: Value) -> Result<Value, Trouble> {
    let operator = match operator {
        "ieq" => "eq",
        "ine" => "ne",
        "ilike" => "like",
        "imatch" => "match",
        "ireplace" => "replace",
        other => other,
    };
    match operator {
        "+" => add(left, right),
        "-" | "*" | "/" | "%" => arithmetic(operator, &left, &right),
        "and" | "or" | "xor" => {
            let (left, right) = (left.truth()?, right.truth()?);
            Ok(Value::Bool(match operator {
                "and" => left && right,
                "or" => left || right,
                _ => left ^ right,
            }))
        }
        "f" => format(&left, &right),
        "eq" | "ne" | "ceq" | "cne" => equal(operator, left, right),
        "gt" | "ge" | "lt" | "le" => order(operator, &left, &right),
        "like" | "notlike" => {
            if matches!(left, Value::List(_)) {
                return Err(Trouble::unclear("-like over a list is not understood"));
            }
            let pattern = right.text()?;
            if pattern.contains(['[', '`']) {
                return Err(Trouble::unclear("of wildcards only * and ? are understood"));
            }
            let found = is_like(&left.text()?, &pattern);
            Ok(Value::Bool(found == (operator == "like")))
        }
        "contains" | "notcontains" | "in" | "notin" => {
            let (list, item) = if operator.ends_with("contains") {
                (left, right)
            } else {
                (right, left)
            };
            let item = item.text()?;
            let found = list.texts()?.iter().any(|text| same(text, &item));
            Ok(Value::Bool(found != operator.starts_with("not")))
        }
        "match" | "notmatch" => {
            let pattern = right.text()?;
            let wanted = operator == "match";
            let found = |text: &str| patterns::is_match(text, &pattern).map(|it| it == wanted);
            match left {
                Value::List(items) => {
                    let mut kept = Vec::new();
                    for item in items {
                        if found(&item.text()?)? {
                            kept.push(item);
                        }
                    }
                    Ok(Value::of(kept))
                }
                left => Ok(Value::Bool(found(&left.text()?)?)),
            }
        }
        "replace" | "creplace" => replace(&left, &right, operator == "replace"),
        "split" => {
            let parts = patterns::split(&left.text()?, &right.text()?)?;
            Ok(Value::of(parts))
        }
        "join" => bounded(left.texts()?.join(&right.text()?)),
        "bor" | "band" | "bxor" => Ok(Value::opaque("what bits are set is used")),
        ".." => range(&left, &right),
        other => Err(Trouble::unclear(format!("-{other} is not understood"))),
    }
}

fn same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

fn add(left: Value, right: Value) -> Result<Value, Trouble> {
    left.is_known()?;
    right.is_known()?;
    match left {
        Value::List(mut items) => {
            items.extend(right.items());
            Ok(Value::List(items))
        }
        Value::Number(number) => match right.number() {
            Some(other) => number
                .checked_add(other)
                .map(Value::Number)
                .ok_or_else(|| Trouble::unclear("a number is too large")),
            None => Err(Trouble::unclear("a number and a text are added")),
        },
        Value::Null => Ok(right),
        Value::Table(mut entries) => match right {
            Value::Table(more) => {
                entries.extend(more);
                Ok(Value::Table(entries))
            }
            _ => Err(Trouble::unclear("a table and something else are added")),
        },
        left => bounded(left.text()? + &right.text()?),
    }
}

fn arithmetic(operator: &str, left: &Value, right: &Value) -> Result<Value, Trouble> {
    left.is_known()?;
    right.is_known()?;
    let unclear = || Trouble::unclear(format!("{operator} is not understood here"));
    let (Value::Number(left), Some(right)) = (left, right.number()) else {
        return Err(unclear());
    };
    let result = match operator {
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" if right != 0 && left % right == 0 => left.checked_div(right),
        "%" => left.checked_rem(right),
        _ => None,
    };
    result.map(Value::Number).ok_or_else(unclear)
}

fn equal(operator: &str, left: Value, right: Value) -> Result<Value, Trouble> {
    let wanted = operator.ends_with("eq");
    let (digest, text) = match (left, right) {
        (Value::Digest(path, algorithm), other) | (other, Value::Digest(path, algorithm)) => {
            ((path, algorithm), other)
        }
        (Value::List(_), _) => {
            return Err(Trouble::unclear("a list is compared with something"));
        }
        (Value::Null, Value::Null) => return Ok(Value::Bool(wanted)),
        (Value::Null, other) | (other, Value::Null) => {
            other.is_known()?;
            return Ok(Value::Bool(!wanted));
        }
        (Value::Number(left), right) => {
            let same = right.number() == Some(left);
            return Ok(Value::Bool(same == wanted));
        }
        (Value::Bool(left), right) => return Ok(Value::Bool((left == right.truth()?) == wanted)),
        (left, right) => {
            let (left, right) = (left.text()?, right.text()?);
            let equal = if operator.starts_with('c') {
                left == right
            } else {
                same(&left, &right)
            };
            return Ok(Value::Bool(equal == wanted));
        }
    };
    if operator.starts_with('c') {
        return Err(Trouble::unclear("digests are compared with their capitals"));
    }
    let (path, algorithm) = digest;
    Ok(Value::Matches {
        path,
        algorithm,
        digest: tools::digest(text.text()?.trim(), algorithm)?,
        if_equal: wanted,
    })
}

fn order(operator: &str, left: &Value, right: &Value) -> Result<Value, Trouble> {
    left.is_known()?;
    right.is_known()?;
    let (Value::Number(left), Some(right)) = (left, right.number()) else {
        return Err(Trouble::unclear("how texts compare is not understood"));
    };
    Ok(Value::Bool(match operator {
        "gt" => *left > right,
        "ge" => *left >= right,
        "lt" => *left < right,
        _ => *left <= right,
    }))
}

/// `'{0}-{1}' -f $a, $b`
pub(super) fn format(left: &Value, right: &Value) -> Result<Value, Trouble> {
    let template = left.text()?;
    let values = match right {
        Value::List(items) => items.clone(),
        one => vec![one.clone()],
    };
    let mut out = String::new();
    let mut rest = template.as_str();
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        let sign = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(sign) {
            out.push_str(sign);
            rest = after;
            continue;
        }
        let inside = rest.split_once('}').filter(|_| sign == "{");
        let (index, after) =
            inside.ok_or_else(|| Trouble::fails(format!("{template:?} is not a format")))?;
        let index: usize = index
            .parse()
            .map_err(|_| Trouble::unclear(format!("the format {{{index}}} is not understood")))?;
        let value = values
            .get(index)
            .ok_or_else(|| Trouble::fails(format!("the format has no value {index}")))?;
        match value.text() {
            Ok(text) => out.push_str(&text),
            Err(trouble) => return Ok(Value::Opaque(trouble)),
        }
        bounded(out.clone())?;
        rest = after;
    }
    out.push_str(rest);
    bounded(out)
}

fn replace(left: &Value, right: &Value, ignores_case: bool) -> Result<Value, Trouble> {
    let words = right.texts()?;
    let (pattern, by) = match words.as_slice() {
        [pattern] => (pattern.as_str(), ""),
        [pattern, by] => (pattern.as_str(), by.as_str()),
        _ => return Err(Trouble::unclear("-replace takes a pattern and a text")),
    };
    let texts = left.texts()?;
    let replaced = texts.iter().map(|text| {
        let text = patterns::replace(text, pattern, by, !ignores_case)?;
        bounded(text)
    });
    Ok(Value::of(replaced.collect::<Result<_, _>>()?))
}

fn range(left: &Value, right: &Value) -> Result<Value, Trouble> {
    match (left.number(), right.number()) {
        (Some(from), Some(to)) if from <= to && to - from <= 1000 => {
            Ok(Value::List((from..=to).map(Value::Number).collect()))
        }
        _ => Err(Trouble::unclear("the range is not understood")),
    }
}

pub(super) fn index(of: Value, index: &Value) -> Result<Value, Trouble> {
    of.is_known()?;
    match of {
        Value::Table(entries) => {
            let key = index.text()?.to_lowercase();
            Ok(entries
                .into_iter()
                .rfind(|(name, _)| *name == key)
                .map_or(Value::Null, |(_, value)| value))
        }
        Value::List(items) => {
            let number = index
                .number()
                .ok_or_else(|| Trouble::unclear("the index is not understood"))?;
            let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
            let at = if number < 0 { length + number } else { number };
            let item = usize::try_from(at)
                .ok()
                .and_then(|at| items.into_iter().nth(at));
            Ok(item.unwrap_or(Value::Null))
        }
        Value::Text(text) => match index.number().map(usize::try_from) {
            Some(Ok(at)) => Ok(text
                .chars()
                .nth(at)
                .map_or(Value::Null, |c| Value::Text(c.to_string()))),
            _ => Err(Trouble::unclear("the index is not understood")),
        },
        _ => Err(Trouble::unclear("the index is not understood")),
    }
}

pub(super) fn cast(to: &str, value: Value) -> Result<Value, Trouble> {
    match to {
        "void" => Ok(Value::Null),
        "string" => match value.text() {
            Ok(text) => Ok(Value::Text(text)),
            Err(trouble) => Ok(Value::Opaque(trouble)),
        },
        "int" | "int32" | "int64" | "long" => value
            .number()
            .map(Value::Number)
            .ok_or_else(|| Trouble::unclear("it is not a number")),
        "bool" | "boolean" => Ok(Value::Bool(value.truth()?)),
        "array" | "string[]" | "object[]" => Ok(Value::List(value.items())),
        "net.securityprotocoltype" => Ok(value),
        _ => Err(Trouble::unclear(format!(
            "the type [{to}] is not understood"
        ))),
    }
}
