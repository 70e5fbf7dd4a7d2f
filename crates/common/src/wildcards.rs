//! Patterns with wildcards.

/// Returns true if a text matches a pattern: `*` matches any characters, `?` one.
pub fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut own) = (0, 0);
    // The last `*`, and the end of what it matches: only this one may have to match more.
    let mut star = None;
    while own < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, own));
                at += 1;
            }
            Some(c) if *c == '?' || *c == text[own] => {
                at += 1;
                own += 1;
            }
            _ => match star {
                Some((from, taken)) => {
                    star = Some((from, taken + 1));
                    at = from + 1;
                    own = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text_and_a_question_mark_one_character() {
        for (pattern, text, expected) in [
            ("win-a", "win-a", true),
            ("win-a", "win-ab", false),
            ("win-*", "win-ab", true),
            ("*", "", true),
            ("*a*c", "abc", true),
            ("*a*c", "abcd", false),
            ("*a*b", "xaxbxb", true),
            ("a*a", "a", false),
            ("a*b*b", "ab", false),
            ("a?c*", "aécdef", true),
            ("a?", "a", false),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
