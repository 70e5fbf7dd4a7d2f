//! Replacement of a loop's variable.

use super::super::error::{Result, ScriptError};
use super::super::traced_text::TracedText;
use super::parse::{CmdNode, LoopKind, Redirect, RedirectTarget, Test};

/// Variable of a loop and its value in one turn.
#[derive(Clone, Copy)]
pub(super) struct LoopVariable<'a> {
    pub(super) name: char,
    pub(super) value: &'a str,
}

impl LoopVariable<'_> {
    /// Replaces the variable in a command.
    pub(super) fn replace_in(self, node: &mut CmdNode) -> Result<()> {
        match node {
            CmdNode::Sequence(nodes)
            | CmdNode::And(nodes)
            | CmdNode::Or(nodes)
            | CmdNode::Pipe(nodes) => nodes.iter_mut().try_for_each(|node| self.replace_in(node)),
            CmdNode::Block(inside, redirects) => {
                self.replace_in(inside)?;
                self.in_redirects(redirects)
            }
            CmdNode::If {
                test,
                then,
                otherwise,
                ..
            } => {
                match test {
                    Test::Exist(text) | Test::Defined(text) | Test::ErrorLevel(text) => {
                        self.in_text(text)?;
                    }
                    Test::Compare { left, right, .. } => {
                        self.in_text(left)?;
                        self.in_text(right)?;
                    }
                }
                self.replace_in(then)?;
                otherwise
                    .as_mut()
                    .map_or(Ok(()), |node| self.replace_in(node))
            }
            CmdNode::For(each) => {
                if let LoopKind::Tree(Some(folder)) = &mut each.kind {
                    self.in_text(folder)?;
                }
                for item in &mut each.items {
                    self.in_text(item)?;
                }
                // The inner loop has a variable of the same name.
                if each.variable == self.name {
                    return Ok(());
                }
                self.replace_in(&mut each.body)
            }
            CmdNode::Simple(simple) => {
                self.in_text(&mut simple.text)?;
                self.in_redirects(&mut simple.redirects)
            }
            CmdNode::Nothing => Ok(()),
        }
    }

    fn in_redirects(self, redirects: &mut [Redirect]) -> Result<()> {
        for redirect in redirects {
            if let RedirectTarget::File { name, .. } = &mut redirect.to {
                self.in_text(name)?;
            }
        }
        Ok(())
    }

    /// Replaces `%i` in a text; other forms, such as `%~ni`, are not supported.
    fn in_text(self, text: &mut TracedText) -> Result<()> {
        let source = std::mem::take(text);
        let mut characters = source.characters().peekable();
        while let Some((c, at)) = characters.next() {
            if c != '%' {
                text.push(c, at);
                continue;
            }
            match characters.peek() {
                Some((next, _)) if *next == self.name => {
                    characters.next();
                    text.append(&TracedText::from_one(self.value, at));
                }
                Some(('~', _)) => {
                    return Err(ScriptError::unclear(
                        "modifiers of the variable of for are not supported",
                    )
                    .at_position(at));
                }
                _ => text.push(c, at),
            }
        }
        Ok(())
    }
}
