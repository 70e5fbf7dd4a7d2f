//! A walk through a page of HTML as the standard's tokenizer sees it.
//!
//! What the catalog's pages say hangs on ids, which need no tree; without building one, a page
//! is read several times faster.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

/// Is shown a page from its beginning to its end.
pub(super) trait Visitor {
    /// A start tag.
    fn open(&mut self, tag: &Tag);
    /// An end tag.
    fn close(&mut self, name: &str);
    /// Text between tags, in pieces; scripts and styles are left out.
    fn text(&mut self, text: &str);
}

/// Shows `html` to a visitor. Every text is a page of some shape, so this cannot fail.
pub(super) fn walk<V: Visitor>(html: &str, visitor: V) -> V {
    let sink = Sink(RefCell::new(State {
        visitor,
        raw: false,
    }));
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(html));
    // The sink never asks for a pause, so one call takes all of the input.
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.0.into_inner().visitor
}

/// An attribute's value, with entities decoded.
pub(super) fn attribute<'t>(tag: &'t Tag, name: &str) -> Option<&'t str> {
    tag.attrs
        .iter()
        .find(|attribute| &*attribute.name.local == name)
        .map(|attribute| &*attribute.value)
}

/// Text as a reader sees it: runs of white space are one space, none at the ends.
pub(super) fn squeezed(text: &str) -> String {
    let mut squeezed = String::with_capacity(text.len().min(256));
    for word in text.split_whitespace() {
        if !squeezed.is_empty() {
            squeezed.push(' ');
        }
        squeezed.push_str(word);
    }
    squeezed
}

struct State<V> {
    visitor: V,
    raw: bool,
}

struct Sink<V>(RefCell<State<V>>);

impl<V: Visitor> TokenSink for Sink<V> {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let State { visitor, raw } = &mut *self.0.borrow_mut();
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                visitor.open(&tag);
                if let Some(kind) = raw_kind(&tag.name) {
                    *raw = !matches!(kind, RawKind::Rcdata);
                    return TokenSinkResult::RawData(kind);
                }
            }
            Token::TagToken(tag) => {
                *raw = false;
                visitor.close(&tag.name);
            }
            Token::CharacterTokens(text) if !*raw => visitor.text(&text),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

/// Elements whose content is text, not markup; the tree builder, which is not used, would tell.
fn raw_kind(name: &str) -> Option<RawKind> {
    match name {
        "script" => Some(RawKind::ScriptData),
        "style" | "xmp" | "iframe" | "noembed" | "noframes" => Some(RawKind::Rawtext),
        "title" | "textarea" => Some(RawKind::Rcdata),
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
            let _ = write!(self.0, "<{}", tag.name);
            if let Some(id) = attribute(tag, "id") {
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
        assert_eq!(
            transcript("<TABLE ID='a&#95;b'><td>R&amp;D<br/></td>"),
            "<table a_b><td>R&D<br></td>"
        );
    }

    #[test]
    fn scripts_hide_what_looks_like_markup_in_them() {
        assert_eq!(
            transcript("<script>var a = '<td id=x>';</script><title><b>&lt;</title>."),
            "<script></script><title><b><</title>."
        );
    }

    #[test]
    fn what_is_no_html_is_text() {
        assert_eq!(transcript("{\"error\": 1}"), "{\"error\": 1}");
        assert_eq!(transcript(""), "");
    }

    #[test]
    fn white_space_of_every_kind_is_squeezed() {
        assert_eq!(squeezed("\n  a \u{a0}\r\n b\t"), "a b");
        assert_eq!(squeezed(" \u{a0} "), "");
    }
}
