//! Operators of PowerShell.

use super::super::error::{self, Ends, Result, ScriptError};
use super::super::process::is_like;
use super::super::tools;
use super::methods::entry;
use super::patterns;
use super::value::{PsValue, integer, limited_text};

pub(super) fn unary(operator: &str, mut value: PsValue) -> Result<PsValue> {
    if let ("not", PsValue::Matches { if_equal, .. }) = (operator, &mut value) {
        *if_equal = !*if_equal;
        return Ok(value);
    }
    match (operator, value) {
        ("not", value) => Ok(PsValue::Bool(!value.to_bool()?)),
        ("-", PsValue::Number(number)) => Ok(PsValue::Number(-number)),
        ("join", value) => limited_text(value.texts()?.concat()),
        ("split", value) => {
            let text = value.text()?;
            Ok(PsValue::from_items(
                text.split_whitespace().map(PsValue::text_value).collect(),
            ))
        }
        (operator, _) => error::unclear(format!("{operator} is not supported here")),
    }
}

pub(super) fn binary(operator: &str, left: PsValue, right: PsValue) -> Result<PsValue> {
    let operator = match operator {
        "ieq" => "eq",
        "ine" => "ne",
        "ilike" => "like",
        "imatch" => "match",
        "ireplace" => "replace",
        other => other,
    };
    if matches!(left, PsValue::TimeSpan(_)) || matches!(right, PsValue::TimeSpan(_)) {
        return error::unclear("computing with time spans is not supported");
    }
    match operator {
        "+" => add(left, right),
        "-" | "*" | "/" | "%" => arithmetic(operator, &left, &right),
        "and" | "or" | "xor" => {
            let (left, right) = (left.to_bool()?, right.to_bool()?);
            Ok(PsValue::Bool(match operator {
                "and" => left && right,
                "or" => left || right,
                _ => left ^ right,
            }))
        }
        "f" => format(&left, &right),
        "eq" | "ne" | "ceq" | "cne" => equal(operator, left, right),
        "gt" | "ge" | "lt" | "le" => order(operator, &left, &right),
        "like" | "notlike" => {
            let found = matches_wildcards(&left, &right)?;
            Ok(PsValue::Bool(found == (operator == "like")))
        }
        "contains" | "notcontains" | "in" | "notin" => {
            let (list, item) = if operator.ends_with("contains") {
                (left, right)
            } else {
                (right, left)
            };
            let found = contains(list, &item)?;
            Ok(PsValue::Bool(found != operator.starts_with("not")))
        }
        "match" | "notmatch" => matching(left, &right.text()?, operator == "match"),
        "replace" | "creplace" => replace(left, &right, operator == "replace"),
        "split" => split(left, &right),
        "join" => limited_text(left.texts()?.join(&right.text()?)),
        "bor" | "band" | "bxor" => Ok(PsValue::opaque("what bits are set is used")),
        ".." => range(&left, &right),
        other => error::unclear(format!("unsupported operator -{other}")),
    }
}

/// Runs `-contains`, which compares as `-eq` does.
fn contains(list: PsValue, item: &PsValue) -> Result<bool> {
    list.check_known()?;
    let mut found = false;
    for one in list.items() {
        found |= equal("eq", one, item.clone())?.to_bool()?;
    }
    Ok(found)
}

/// Runs `-like`.
fn matches_wildcards(left: &PsValue, right: &PsValue) -> Result<bool> {
    if matches!(left, PsValue::List(_)) {
        return error::unclear("-like on a list is not supported");
    }
    let pattern = right.text()?;
    if pattern.contains(['[', '`']) {
        return error::unclear("only the wildcards * and ? are supported");
    }
    Ok(is_like(&left.text()?, &pattern))
}

/// Runs `-match`, or `-notmatch` if no match is wanted; of a list, it returns the items.
fn matching(left: PsValue, pattern: &str, wanted: bool) -> Result<PsValue> {
    let found = |text: &str| patterns::is_match(text, pattern).map(|it| it == wanted);
    let PsValue::List(items) = left else {
        return Ok(PsValue::Bool(found(&left.text()?)?));
    };
    let mut kept = Vec::new();
    for item in items {
        if found(&item.text()?)? {
            kept.push(item);
        }
    }
    Ok(PsValue::from_items(kept))
}

fn same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

fn add(left: PsValue, right: PsValue) -> Result<PsValue> {
    left.check_known()?;
    right.check_known()?;
    match left {
        PsValue::List(_) if right == PsValue::Null => {
            error::unclear("adding nothing to a list is not supported")
        }
        PsValue::List(mut items) => {
            items.extend(right.items());
            Ok(PsValue::List(items))
        }
        PsValue::Bool(left) => match right {
            PsValue::Number(_) | PsValue::Bool(_) => add(PsValue::Number(i64::from(left)), right),
            _ => error::unclear("adding a Boolean and a text is not supported"),
        },
        PsValue::Number(number) => match right.number() {
            Some(other) => number
                .checked_add(other)
                .map(PsValue::Number)
                .ok_or_else(|| ScriptError::unclear("number too large")),
            None => error::unclear("adding a number and a string is not supported"),
        },
        PsValue::Null => Ok(right),
        PsValue::Table(entries) => match right {
            PsValue::Table(more) => {
                let is_known = |key: &String| entries.iter().any(|(known, _)| known == key);
                if let Some((key, _)) = more.iter().find(|(key, _)| is_known(key)) {
                    return error::unclear(format!("both tables have {key}"));
                }
                let all = entries.iter().chain(more.iter()).cloned();
                Ok(PsValue::Table(all.collect::<Vec<_>>().into()))
            }
            _ => error::unclear("adding a table and another value is not supported"),
        },
        left => limited_text(left.text()? + &right.text()?),
    }
}

fn arithmetic(operator: &str, left: &PsValue, right: &PsValue) -> Result<PsValue> {
    left.check_known()?;
    right.check_known()?;
    let unclear = || ScriptError::unclear(format!("{operator} is not supported here"));
    let (PsValue::Number(left), Some(right)) = (left, right.number()) else {
        return Err(unclear());
    };
    let result = match operator {
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" if right != 0 && left % right == 0 => left.checked_div(right),
        "%" => left.checked_rem(right),
        _ => None,
    };
    // Above, it may have a fraction or an exponent.
    let result = result.filter(|it| it.unsigned_abs() < 1_000_000_000_000_000);
    result.map(PsValue::Number).ok_or_else(unclear)
}

fn equal(operator: &str, left: PsValue, right: PsValue) -> Result<PsValue> {
    let wanted = operator.ends_with("eq");
    let is_equal = match (left, right) {
        (PsValue::Digest(path, algorithm), other) | (other, PsValue::Digest(path, algorithm)) => {
            if operator.starts_with('c') {
                return error::unclear("case-sensitive comparison of digests is not supported");
            }
            let digest = tools::digest(other.text()?.trim(), algorithm);
            return Ok(PsValue::Matches {
                path,
                algorithm,
                digest: digest.map_err(|error| error.ending(Ends::Script))?,
                if_equal: wanted,
            });
        }
        (PsValue::List(_), _) => return error::unclear("comparing a list is not supported"),
        (PsValue::Null, PsValue::Null) => true,
        (PsValue::Null, other) | (other, PsValue::Null) => {
            other.check_known()?;
            false
        }
        (PsValue::Number(left), right) => {
            right.check_known()?;
            // The right side is converted to the type of the left one.
            let right = match &right {
                PsValue::Text(text) => integer(text)?,
                right => right.number(),
            };
            right == Some(left)
        }
        (PsValue::Bool(left), right) => left == right.to_bool()?,
        (left, right) if operator.starts_with('c') => left.text()? == right.text()?,
        (left, right) => same(&left.text()?, &right.text()?),
    };
    Ok(PsValue::Bool(is_equal == wanted))
}

fn order(operator: &str, left: &PsValue, right: &PsValue) -> Result<PsValue> {
    left.check_known()?;
    right.check_known()?;
    let (PsValue::Number(left), Some(right)) = (left, right.number()) else {
        return error::unclear("this comparison of strings is not supported");
    };
    Ok(PsValue::Bool(match operator {
        "gt" => *left > right,
        "ge" => *left >= right,
        "lt" => *left < right,
        _ => *left <= right,
    }))
}

/// `'{0}-{1}' -f $a, $b`
pub(super) fn format(left: &PsValue, right: &PsValue) -> Result<PsValue> {
    let template = left.text()?;
    let values = match right {
        PsValue::List(items) => items.clone(),
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
        let (index, after) = inside
            .ok_or_else(|| ScriptError::fails(format!("{template:?} is not a valid format")))?;
        let index: usize = index
            .parse()
            .map_err(|_| ScriptError::unclear(format!("unsupported format {{{index}}}")))?;
        let value = values
            .get(index)
            .ok_or_else(|| ScriptError::fails(format!("the format has no value {index}")))?;
        if matches!(value, PsValue::List(_)) {
            return error::unclear("a list among the values of a format is not supported");
        }
        match value.text() {
            Ok(text) => out.push_str(&text),
            Err(error) => return Ok(PsValue::Opaque(error)),
        }
        limited_text(out.clone())?;
        rest = after;
    }
    out.push_str(rest);
    limited_text(out)
}

/// What `-replace` and `-split` take: nothing is an empty text.
fn texts_of(value: PsValue) -> Vec<PsValue> {
    match value {
        PsValue::Null => vec![PsValue::text_value("")],
        other => other.items(),
    }
}

fn replace(left: PsValue, right: &PsValue, ignores_case: bool) -> Result<PsValue> {
    let words = right.texts()?;
    let (pattern, by) = match words.as_slice() {
        [pattern] => (pattern.as_str(), ""),
        [pattern, by] => (pattern.as_str(), by.as_str()),
        _ => return error::unclear("expected a pattern and a string for -replace"),
    };
    let replaced = texts_of(left).into_iter().map(|text| {
        let text = patterns::replace(&text.text()?, pattern, by, !ignores_case)?;
        limited_text(text)
    });
    Ok(PsValue::from_items(replaced.collect::<Result<_, _>>()?))
}

fn split(left: PsValue, right: &PsValue) -> Result<PsValue> {
    let (pattern, limit) = match right {
        PsValue::List(items) => match items.as_slice() {
            [pattern, PsValue::Number(limit)] => (pattern.text()?, *limit),
            _ => return error::unclear("-split with options is not supported"),
        },
        pattern => (pattern.text()?, 0),
    };
    let mut parts = Vec::new();
    for text in texts_of(left) {
        parts.extend(patterns::split(&text.text()?, &pattern, limit)?);
    }
    Ok(PsValue::from_items(parts))
}

fn range(left: &PsValue, right: &PsValue) -> Result<PsValue> {
    match (left.number(), right.number()) {
        (Some(from), Some(to)) if from <= to && to - from <= 1000 => {
            Ok(PsValue::List((from..=to).map(PsValue::Number).collect()))
        }
        _ => error::unclear("unsupported range"),
    }
}

pub(super) fn index(of: PsValue, index: &PsValue) -> Result<PsValue> {
    of.check_known()?;
    match of {
        PsValue::Table(entries) => {
            let key = index.text()?.to_lowercase();
            // Keys with digits are numbers, of `$Matches`, and no text equals them.
            if matches!(index, PsValue::Text(text) if text.parse::<i64>().is_ok()) {
                return Ok(PsValue::Null);
            }
            Ok(entry(&entries, &key).cloned().unwrap_or(PsValue::Null))
        }
        PsValue::List(items) => {
            let number = index
                .number()
                .ok_or_else(|| ScriptError::unclear("unsupported index"))?;
            let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
            let at = if number < 0 { length + number } else { number };
            let item = usize::try_from(at)
                .ok()
                .and_then(|at| items.into_iter().nth(at));
            Ok(item.unwrap_or(PsValue::Null))
        }
        PsValue::Text(text) => match index.number().map(usize::try_from) {
            Some(Ok(at)) => Ok(text
                .chars()
                .nth(at)
                .map_or(PsValue::Null, |c| PsValue::Text(c.to_string()))),
            _ => error::unclear("unsupported index"),
        },
        _ => error::unclear("unsupported index"),
    }
}

/// Converts a value to a type; `None` if the type is not supported.
fn conversion(to: &str, value: PsValue) -> Result<Option<PsValue>> {
    let value = match (to, value) {
        ("void", _) | ("xml", PsValue::Null) => PsValue::Null,
        // A text that is not XML fails, whether the result is used or not.
        ("xml" | "xml.xmldocument", value) => {
            value.check_known()?;
            return Err(unsupported(to));
        }
        // A digest can only be compared, and the comparison is what its type would be.
        (_, value @ PsValue::Opaque(_))
        | ("string", value @ PsValue::Digest(..))
        | ("bool" | "boolean", value @ PsValue::Matches { .. })
        | ("object" | "psobject" | "net.securityprotocoltype", value)
        | ("hashtable", value @ PsValue::Table(_))
        | ("scriptblock", value @ PsValue::Block(_))
        | ("switch", value @ PsValue::Bool(_))
        | ("timespan", value @ PsValue::TimeSpan(_)) => value,
        ("string", value) => match value.text() {
            Ok(text) => PsValue::Text(text),
            Err(error) => PsValue::Opaque(error),
        },
        ("int" | "int32" | "int64" | "long", value) => {
            let number = match &value {
                PsValue::Null => Some(0),
                PsValue::Text(text) => integer(text)?,
                value => value.number(),
            };
            let is_long = to.ends_with("64") || to == "long";
            let number = number.filter(|it| is_long || i32::try_from(*it).is_ok());
            number
                .map(PsValue::Number)
                .ok_or_else(|| ScriptError::unclear("not a number"))?
        }
        ("bool" | "boolean", value) => PsValue::Bool(value.to_bool()?),
        ("array" | "object[]", value) => PsValue::List(value.items()),
        ("string[]" | "int[]" | "int32[]", value) => {
            let item = &to[..to.len() - 2];
            let items = value.items().into_iter().map(|value| cast(item, value));
            PsValue::List(items.collect::<Result<_, _>>()?)
        }
        _ => return Ok(None),
    };
    Ok(Some(value))
}

fn unsupported(kind: &str) -> ScriptError {
    ScriptError::unclear(format!("unsupported type [{kind}]"))
}

pub(super) fn cast(to: &str, value: PsValue) -> Result<PsValue> {
    conversion(to, value)?.ok_or_else(|| unsupported(to))
}

/// The value of a variable with a type. Only its use is an error if the type is not supported.
pub(super) fn typed(kind: &str, value: PsValue) -> Result<PsValue> {
    let value = conversion(kind, value)?;
    Ok(value.unwrap_or_else(|| PsValue::Opaque(unsupported(kind))))
}
