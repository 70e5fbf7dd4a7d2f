//! Replacement of a loop's variable.

use super::super::error::ScriptError;
use super::super::traced_text::TracedText;
use super::parse::{CmdNode, LoopKind, Redirect, RedirectTarget, SimpleCommand, Test};

/// Variable of a loop and its value in one turn.
#[derive(Clone, Copy)]
pub(super) struct LoopVariable<'a> {
    pub(super) name: char,
    pub(super) value: &'a str,
}

impl LoopVariable<'_> {
    /// Replaces the variable in a command.
    pub(super) fn in_node(self, node: &CmdNode) -> Result<CmdNode, ScriptError> {
        Ok(match node {
            CmdNode::Sequence(nodes) => CmdNode::Sequence(self.in_nodes(nodes)?),
            CmdNode::And(nodes) => CmdNode::And(self.in_nodes(nodes)?),
            CmdNode::Or(nodes) => CmdNode::Or(self.in_nodes(nodes)?),
            CmdNode::Pipe(nodes) => CmdNode::Pipe(self.in_nodes(nodes)?),
            CmdNode::Block(inside, redirects) => {
                CmdNode::Block(self.in_box(inside)?, self.in_redirects(redirects)?)
            }
            CmdNode::If {
                not,
                ignore_case,
                test,
                then,
                otherwise,
            } => CmdNode::If {
                not: *not,
                ignore_case: *ignore_case,
                test: self.in_test(test)?,
                then: self.in_box(then)?,
                otherwise: match otherwise {
                    Some(node) => Some(self.in_box(node)?),
                    None => None,
                },
            },
            CmdNode::For {
                kind,
                variable,
                items,
                body,
                at,
            } => CmdNode::For {
                kind: self.in_kind(kind)?,
                variable: *variable,
                items: items
                    .iter()
                    .map(|item| self.in_text(item))
                    .collect::<Result<_, _>>()?,
                body: if *variable == self.name {
                    body.clone()
                } else {
                    self.in_box(body)?
                },
                at: *at,
            },
            CmdNode::Simple(simple) => CmdNode::Simple(SimpleCommand {
                text: self.in_text(&simple.text)?,
                redirects: self.in_redirects(&simple.redirects)?,
                ends_in_spaces: simple.ends_in_spaces,
            }),
            CmdNode::Nothing => CmdNode::Nothing,
        })
    }

    fn in_box(self, node: &CmdNode) -> Result<Box<CmdNode>, ScriptError> {
        self.in_node(node).map(Box::new)
    }

    fn in_nodes(self, nodes: &[CmdNode]) -> Result<Vec<CmdNode>, ScriptError> {
        nodes.iter().map(|node| self.in_node(node)).collect()
    }

    fn in_kind(self, kind: &LoopKind) -> Result<LoopKind, ScriptError> {
        Ok(match kind {
            LoopKind::Tree(Some(folder)) => LoopKind::Tree(Some(self.in_text(folder)?)),
            other => other.clone(),
        })
    }

    fn in_test(self, test: &Test) -> Result<Test, ScriptError> {
        Ok(match test {
            Test::Exist(path) => Test::Exist(self.in_text(path)?),
            Test::Defined(name) => Test::Defined(self.in_text(name)?),
            Test::ErrorLevel(number) => Test::ErrorLevel(self.in_text(number)?),
            Test::Compare {
                left,
                operator,
                right,
            } => Test::Compare {
                left: self.in_text(left)?,
                operator: operator.clone(),
                right: self.in_text(right)?,
            },
        })
    }

    fn in_redirects(self, redirects: &[Redirect]) -> Result<Vec<Redirect>, ScriptError> {
        let replaced = redirects.iter().map(|redirect| {
            let to = match &redirect.to {
                RedirectTarget::File { name, append } => RedirectTarget::File {
                    name: self.in_text(name)?,
                    append: *append,
                },
                other => other.clone(),
            };
            let stream = redirect.stream;
            Ok(Redirect { stream, to })
        });
        replaced.collect()
    }

    /// Replaces `%i` in a text; other forms, such as `%~ni`, are not supported.
    fn in_text(self, text: &TracedText) -> Result<TracedText, ScriptError> {
        let mut out = TracedText::default();
        let mut characters = text.characters().peekable();
        while let Some((c, at)) = characters.next() {
            if c != '%' {
                out.push(c, at);
                continue;
            }
            match characters.peek() {
                Some((next, _)) if *next == self.name => {
                    characters.next();
                    out.append(&TracedText::from_one(self.value, at));
                }
                Some(('~', _)) => {
                    return Err(ScriptError::unclear(
                        "modifiers of the variable of for are not supported",
                    )
                    .at_position(at));
                }
                _ => out.push(c, at),
            }
        }
        Ok(out)
    }
}
