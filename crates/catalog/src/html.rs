//! Traversal of an HTML page with the standard's tokenizer.
//!
//! The catalog's pages are read by element ids, which need no tree; without building one, a page is
//! read several times faster.

use html5gum::{StartTag, State, Token, Tokenizer};

/// Receives the tokens of a page in order.
pub(super) trait Visitor {
    /// A start tag.
    fn open(&mut self, tag: &Tag);
    /// An end tag.
    fn close(&mut self, name: &str);
    /// Text between tags, in pieces; scripts and styles are left out.
    fn text(&mut self, text: &str);
}

/// A start tag, with entities decoded.
pub(super) struct Tag(StartTag<()>);

impl Tag {
    pub(super) fn name(&self) -> &str {
        utf8(&self.0.name)
    }

    pub(super) fn is_self_closing(&self) -> bool {
        self.0.self_closing
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        let value = self.0.attributes.get(name.as_bytes())?;
        Some(utf8(value))
    }
}

/// Passes the tokens of `html` to a visitor. Every text is valid HTML, so this cannot fail.
pub(super) fn walk<V: Visitor>(html: &str, mut visitor: V) -> V {
    let mut is_hidden = false;
    let mut tokens = Tokenizer::new(html);
    while let Some(Ok(token)) = tokens.next() {
        match token {
            Token::StartTag(tag) => {
                let tag = Tag(tag);
                visitor.open(&tag);
                if let Some(state) = content_state(tag.name()) {
                    is_hidden = state != State::RcData;
                    tokens.set_state(state);
                }
            }
            Token::EndTag(tag) => {
                is_hidden = false;
                visitor.close(utf8(&tag.name));
            }
            Token::String(text) if !is_hidden => visitor.text(utf8(&text)),
            _ => {}
        }
    }
    visitor
}

/// Slices of a text at token boundaries are valid UTF-8.
fn utf8(part: &[u8]) -> &str {
    std::str::from_utf8(part).unwrap_or_default()
}

/// Collapses runs of white space to one space, and trims the ends.
pub(super) fn collapse_whitespace(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// Tokenizer state of elements whose content is text, which the tree builder would set.
fn content_state(name: &str) -> Option<State> {
    match name {
        "script" => Some(State::ScriptData),
        "style" | "xmp" | "iframe" | "noembed" | "noframes" => Some(State::RawText),
        "title" | "textarea" => Some(State::RcData),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[derive(Default)]
    struct Transcript(String);

    impl Visitor for Transcript {
        fn open(&mut self, tag: &Tag) {
            let _ = write!(self.0, "<{}", tag.name());
            if let Some(id) = tag.attribute("id") {
                let _ = write!(self.0, " {id}");
            }
            self.0.push('>');
        }

        fn close(&mut self, name: &str) {
            let _ = write!(self.0, "</{name}>");
        }

        fn text(&mut self, text: &str) {
            self.0.push_str(text);
        }
    }

    fn transcript(html: &str) -> String {
        walk(html, Transcript::default()).0
    }

    #[test]
    fn tags_ids_and_texts_come_in_order_with_entities_decoded() {
        let html = "<TABLE ID='a&#95;b'><td>R&amp;D<br/></td>";
        assert_eq!(transcript(html), "<table a_b><td>R&D<br></td>");
    }

    #[test]
    fn scripts_hide_what_looks_like_markup_in_them() {
        let html = "<script>var a = '<td id=x>';</script><title><b>&lt;</title>.";
        assert_eq!(transcript(html), "<script></script><title><b><</title>.");
    }

    #[test]
    fn what_is_no_html_is_text() {
        assert_eq!(transcript("{\"error\": 1}"), "{\"error\": 1}");
        assert_eq!(transcript(""), "");
    }

    #[test]
    fn white_space_of_every_kind_is_squeezed() {
        assert_eq!(collapse_whitespace("\n  a \u{a0}\r\n b\t"), "a b");
        assert_eq!(collapse_whitespace(" \u{a0} "), "");
    }
}
