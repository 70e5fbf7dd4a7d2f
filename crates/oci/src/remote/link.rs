//! `Link` headers (RFC 8288), which contain the next page.

use reqwest::header::{HeaderMap, LINK};

/// Next page according to the `Link` headers of a response.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextPage {
    /// No next page: no link, or only links with other relations.
    None,
    /// This URL, which may be relative.
    At(String),
    /// There is a link without a relation, or one that cannot be parsed.
    Unclear,
}

impl NextPage {
    pub(super) fn read(headers: &HeaderMap) -> Self {
        let mut next = Self::None;
        for value in headers.get_all(LINK) {
            let text = String::from_utf8_lossy(value.as_bytes());
            match links(&text) {
                Some(links) => {
                    for (target, relations) in links {
                        match relations {
                            Some(names) if has_next(&names) => return Self::At(target),
                            Some(_) => {}
                            None => next = Self::Unclear,
                        }
                    }
                }
                None => next = Self::Unclear,
            }
        }
        next
    }
}

/// Relations are separated by spaces and case-insensitive.
fn has_next(names: &str) -> bool {
    names
        .split_ascii_whitespace()
        .any(|name| name.eq_ignore_ascii_case("next"))
}

/// Parses the links of one header into targets and relations; `None` if invalid.
fn links(text: &str) -> Option<Vec<(String, Option<String>)>> {
    let mut links = Vec::new();
    let mut rest = text.trim_start_matches(is_between);
    while !rest.is_empty() {
        let (target, after) = rest.strip_prefix('<')?.split_once('>')?;
        let mut relations = None;
        rest = after.trim_start();
        while let Some(parameter) = rest.strip_prefix(';') {
            let (name, value, after) = parameter_of(parameter)?;
            // The first one takes precedence.
            if name.eq_ignore_ascii_case("rel") && relations.is_none() {
                relations = value;
            }
            rest = after;
        }
        links.push((target.trim().to_owned(), relations));
        if !rest.is_empty() && !rest.starts_with(',') {
            return None;
        }
        rest = rest.trim_start_matches(is_between);
    }
    Some(links)
}

/// Returns true between two links: the grammar of lists allows empty entries.
fn is_between(c: char) -> bool {
    c == ',' || c.is_ascii_whitespace()
}

/// Parses `NAME`, `NAME=TOKEN` or `NAME="TEXT"`, with optional spaces, and returns the rest. The
/// grammar has no single quotes, but some registries write them.
fn parameter_of(text: &str) -> Option<(&str, Option<String>, &str)> {
    let text = text.trim_start();
    let end = text.find(['=', ';', ',']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let name = name.trim_end();
    let Some(value) = rest.strip_prefix('=') else {
        return Some((name, None, rest));
    };
    let value = value.trim_start();
    let (value, rest) = match value.chars().next() {
        Some(quote @ ('"' | '\'')) => quoted(&value[1..], quote)?,
        _ => {
            let end = value.find([';', ',']).unwrap_or(value.len());
            let (value, rest) = value.split_at(end);
            (value.trim_end().to_owned(), rest)
        }
    };
    Some((name, Some(value), rest.trim_start()))
}

/// Parses a quoted text up to its closing quote, and returns the rest.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => value.push(characters.next()?.1),
            c if c == quote => return Some((value, &text[at + c.len_utf8()..])),
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reqwest::header::HeaderValue;

    use super::*;

    fn next(headers: &[&str]) -> NextPage {
        let mut map = HeaderMap::new();
        for header in headers {
            map.append(LINK, HeaderValue::from_bytes(header.as_bytes()).unwrap());
        }
        NextPage::read(&map)
    }

    fn at(target: &str) -> NextPage {
        NextPage::At(target.to_owned())
    }

    #[test]
    fn the_next_page_is_found_in_every_spelling_of_the_grammar() {
        for link in [
            r#"</v2/a?last=b>; rel="next""#,
            "</v2/a?last=b>;rel=next",
            r#"</v2/a?last=b>; rel = "next""#,
            r#"</v2/a?last=b> ; REL="Next""#,
            r#"</v2/a?last=b>; rel="prefetch next""#,
            r#"</v2/a?last=b>; title="a, b; rel=prev"; rel="next""#,
            r#"</v2/a?last=b>; title="say \"next\""; rel=next"#,
            r#"</docs>; rel="help", </v2/a?last=b>; rel="next""#,
            r#", </docs>; rel="first" ,, </v2/a?last=b>; rel="next","#,
            r#"< /v2/a?last=b >; rel="next""#,
            r#"</v2/a?last=b>; crossorigin; rel="next""#,
            "</v2/a?last=b>; rel='next'",
            "</v2/a?last=b>; title=\"Übersicht\"; rel=next",
        ] {
            assert_eq!(next(&[link]), at("/v2/a?last=b"), "{link}");
        }
        assert_eq!(next(&["</a>; rel=prev", "</b>; rel=next"]), at("/b"));
        assert_eq!(next(&["</a,b>; rel=next"]), at("/a,b"));
    }

    #[test]
    fn links_to_other_things_are_no_pages() {
        assert_eq!(next(&[]), NextPage::None);
        assert_eq!(next(&[""]), NextPage::None);
        assert_eq!(next(&[r#"</docs>; rel="help""#]), NextPage::None);
        assert_eq!(next(&["</a>; rel=prev; rel=next"]), NextPage::None);
        assert_eq!(next(&["</a>; rel=nextish"]), NextPage::None);
    }

    #[test]
    fn what_is_not_understood_is_not_the_end() {
        for link in [
            "</v2/a?last=b>",
            "</v2/a?last=b>; rel",
            "/v2/a?last=b; rel=next",
            "</v2/a?last=b; rel=next",
            r#"</v2/a?last=b>; rel="next"#,
            "</v2/a?last=b> rel=next",
        ] {
            assert_eq!(next(&[link]), NextPage::Unclear, "{link}");
        }
    }

    proptest! {
        #[test]
        fn any_header_is_read_to_its_end(text in "[ -~]{0,60}") {
            let _ = next(&[&text]);
        }

        #[test]
        fn a_next_page_is_found_whatever_else_a_link_says(
            title in "[^\"\\\\\u{0}-\u{1f}\u{7f}]{0,20}",
            target in "/[a-z?=&,;]{0,20}",
        ) {
            let link = format!("</x>; rel=\"up\"; title=\"{title}\", <{target}>; title=\"{title}\"; rel=\"next\"");
            prop_assert_eq!(next(&[&link]), NextPage::At(target));
        }
    }
}
