//! Formatted text: `[INSTALLDIR]bin`, `[#file]`, `[%ComSpec]`, `[\[]`, `{text if [PROPERTY] is set}`.

use std::str::Chars;

use super::error::MsiError;
use super::session::Session;

/// Maximum length of a formatted text.
const LONGEST: usize = 1 << 20;
/// Maximum length of all values in formatted texts of a package.
const LONGEST_IN_ALL: usize = 16 << 20;
/// Maximum depth of brackets.
const DEPTH: usize = 16;

/// Stands for `[~]`, which ends a string of a list.
pub(crate) const SEPARATOR: char = '\0';

impl Session<'_> {
    /// Replaces the references in a text.
    pub(crate) fn format(&self, text: &str) -> Result<String, MsiError> {
        Ok(self.format_up_to(None, text, &mut text.chars(), 0)?.text)
    }

    /// Reads the rest of a text up to a closing bracket.
    fn format_up_to(
        &self,
        close: Option<char>,
        text: &str,
        rest: &mut Chars<'_>,
        depth: usize,
    ) -> Result<FormattedText, MsiError> {
        if depth > DEPTH {
            let why = format!("the text {text:?} has too many brackets");
            return Err(MsiError::TooLarge(why));
        }
        let mut out = FormattedText::default();
        while let Some(next) = rest.next() {
            let inside = rest.as_str();
            match next {
                next if Some(next) == close => {
                    out.is_closed = true;
                    return Ok(out);
                }
                '[' if let Some((character, after)) = escaped(inside) => {
                    *rest = after.chars();
                    out.references += 1;
                    out.text.push(character);
                }
                '[' => {
                    let name = self.format_up_to(Some(']'), text, rest, depth + 1)?;
                    if name.is_closed {
                        let value = self.reference(&name.text)?;
                        self.count(value.len())?;
                        out.references += 1;
                        out.is_incomplete |= value.is_empty();
                        out.text.push_str(&value);
                    } else {
                        out.text.push(next);
                        out.text.push_str(inside);
                    }
                }
                '{' => {
                    let group = self.format_up_to(Some('}'), text, rest, depth + 1)?;
                    if !group.is_closed {
                        out.text.push(next);
                        out.text.push_str(&group.text);
                    } else if group.references == 0 {
                        out.text.push('{');
                        out.text.push_str(&group.text);
                        out.text.push('}');
                    } else if !group.is_incomplete {
                        out.text.push_str(&group.text);
                    }
                }
                next => out.text.push(next),
            }
            if out.text.len() > LONGEST {
                let why = format!("a formatted text is longer than {LONGEST} bytes");
                return Err(MsiError::TooLarge(why));
            }
        }
        Ok(out)
    }

    /// Adds the length of a value to those so far: a small package can repeat a long one often.
    pub(crate) fn count(&self, length: usize) -> Result<(), MsiError> {
        let total = self.formatted.get() + length;
        self.formatted.set(total);
        if total <= LONGEST_IN_ALL {
            return Ok(());
        }
        Err(MsiError::TooLarge(format!(
            "its formatted texts are longer than {LONGEST_IN_ALL} bytes in all"
        )))
    }

    fn reference(&self, name: &str) -> Result<String, MsiError> {
        if name == "~" {
            return Ok(SEPARATOR.to_string());
        }
        let Some((sign, rest)) = name.split_at_checked(1) else {
            return Ok(String::new());
        };
        Ok(match sign {
            "%" => self.environment(rest),
            // Volumes of containers have no short names, and then Windows gives the long one.
            "#" | "!" => self.file_text(rest)?,
            "$" => match self.installed(rest) {
                Some(component) => self.directory(&component.directory)?.to_owned(),
                None => String::new(),
            },
            _ => self.asked_property(name),
        })
    }
}

#[derive(Debug, Default)]
struct FormattedText {
    text: String,
    references: usize,
    /// True if a reference is empty.
    is_incomplete: bool,
    is_closed: bool,
}

/// The character of `\x]`, which may be a bracket, and what follows; text before `]` has no effect.
fn escaped(inside: &str) -> Option<(char, &str)> {
    let mut rest = inside.strip_prefix('\\')?.chars();
    let escaped = rest.next()?;
    let (_, after) = rest.as_str().split_once(']')?;
    Some((escaped, after))
}
