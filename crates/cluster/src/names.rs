//! The API server's syntax of names, labels and quantities.

/// Returns true for a DNS label, as names of namespaces are.
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && is_dns_word(text)
}

/// Returns true for a DNS subdomain, as names of most objects are.
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_word)
}

fn is_dns_word(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(is_inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Returns true for the name of a label, with an optional domain before it.
pub fn is_label_key(text: &str) -> bool {
    let (domain, name) = match text.split_once('/') {
        Some((domain, name)) => (Some(domain), name),
        None => (None, text),
    };
    !name.is_empty() && is_label_value(name) && domain.is_none_or(is_dns_subdomain)
}

/// Returns true for up to 63 letters, digits, dashes, underscores and dots, with a letter or digit
/// at both ends.
pub fn is_label_value(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_end = |c: char| c.is_ascii_alphanumeric();
    text.len() <= 63
        && text.chars().all(is_inner)
        && text.chars().next().is_none_or(is_end)
        && text.chars().next_back().is_none_or(is_end)
}

/// Returns true for a quantity that can be requested, which is not below zero.
pub fn is_quantity(text: &str) -> bool {
    const SUFFIXES: [&str; 16] = [
        "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
    ];
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_prefix('+').unwrap_or(text);
    let is_of_number = |c: char| c.is_ascii_digit() || c == '.';
    let end = text.find(|c: char| !is_of_number(c)).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_exponent = || {
        let power = suffix.strip_prefix(['e', 'E']);
        let power = power.map(|power| power.strip_prefix(['+', '-']).unwrap_or(power));
        power.is_some_and(|power| !power.is_empty() && are_digits(power))
    };
    !(whole.is_empty() && fraction.is_empty())
        && are_digits(fraction)
        && (SUFFIXES.contains(&suffix) || is_exponent())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts for which a function returns true.
    fn accepted<'a>(is_valid: fn(&str) -> bool, texts: &[&'a str]) -> Vec<&'a str> {
        let texts = texts.iter().copied();
        texts.filter(|text| is_valid(text)).collect()
    }

    #[test]
    fn names_are_those_of_dns() {
        let (label, long) = ("a".repeat(63), "a".repeat(64));
        let labels = ["a", "7", "a-b", &label];
        assert_eq!(accepted(is_dns_label, &labels), labels);
        let wrong = ["", "-a", "a-", "A", "a_b", "a.b", "a/b", "ä", &long];
        assert_eq!(accepted(is_dns_label, &wrong), [""; 0]);
        let (longest, too_long) = (
            format!("{}b", "a.".repeat(126)),
            format!("{}b", "a.".repeat(127)),
        );
        let names = ["a", "a.b-c.7", &long, &longest];
        assert_eq!(accepted(is_dns_subdomain, &names), names);
        let wrong = ["", ".", "a.", ".a", "a..b", "a.-b", "A.b", "a b", &too_long];
        assert_eq!(accepted(is_dns_subdomain, &wrong), [""; 0]);
    }

    #[test]
    fn labels_are_those_of_kubernetes() {
        let keys = ["pool", "A_b.c-d", "example.com/pool"];
        assert_eq!(accepted(is_label_key, &keys), keys);
        let wrong = [
            "", "a b", "-a", "a-", "/a", "a/", "a/b/c", "Example.com/a", "a_b/c", "a=b",
        ];
        assert_eq!(accepted(is_label_key, &wrong), [""; 0]);
        let (value, long) = ("v".repeat(63), "v".repeat(64));
        let values = ["", "10.0.17763", "A_b", &value];
        assert_eq!(accepted(is_label_value, &values), values);
        let wrong = ["a b", "a,b", ".a", "a_", &long];
        assert_eq!(accepted(is_label_value, &wrong), [""; 0]);
    }

    #[test]
    fn quantities_are_those_of_kubernetes() {
        let quantities = [
            "0", "2", "+2", "1.5", ".5", "1.", "500m", "4Gi", "4G", "128974848", "129e6", "1E3",
            "1E", "1e+3", "1e-3", "0.1Ei",
        ];
        assert_eq!(accepted(is_quantity, &quantities), quantities);
        let wrong = [
            "", ".", "+", "-1", "1.2.3", "4GB", "4gi", "4 Gi", " 4Gi", "4Gi ", "1e", "1e+",
            "1e1.5", "1e3Gi", "Gi", "two", "1,5", "4KI", "4Ki3",
        ];
        assert_eq!(accepted(is_quantity, &wrong), [""; 0]);
    }
}
