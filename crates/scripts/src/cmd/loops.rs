//! Loops.

use std::collections::HashSet;

use wincimg_windows::path::ImagePath;

use super::super::error::{self, Result, ScriptError, ScriptErrorKind};
use super::super::process::{HIDDEN_OR_SYSTEM, PathState, Paths, Wildcards};
use super::super::traced_text::TracedText;
use super::Cmd;
use super::batch::modified;
use super::expand::check_length;
use super::parse::{ForLoop, LoopKind};

/// Maximum number of turns of a loop over numbers.
const LONGEST_LOOP: usize = 1000;

/// Reason why a loop over files cannot run yet.
const UNKNOWN_FILES: &str = "the files of the loop are known only after a download";

impl Cmd<'_, '_> {
    pub(super) fn for_loop(&mut self, each: &ForLoop) -> Result<i32> {
        if self.output.is_some() && !self.machine.echo_off && !each.is_quiet {
            let why = "it writes the commands that cmd echoes to the file, too";
            return Err(ScriptError::unclear(why).help("write do @(…), or echo off before"));
        }
        // The items of /l and /r are one list.
        let lists: Vec<&[TracedText]> = match each.kind {
            LoopKind::Numbers | LoopKind::Tree(_) => vec![each.items.as_slice()],
            LoopKind::Items | LoopKind::Folders => each.items.chunks(1).collect(),
        };
        let mut code = 0;
        for items in lists {
            let folder = self.machine.folder.clone();
            let values = self.values(&each.kind, items)?;
            for value in &values {
                if code != 0 {
                    let why = "a command in the loop fails, and the exit code is unknown";
                    return error::unclear(why);
                }
                self.loop_variables.push((each.variable, value.clone()));
                let done = self.node(&each.body);
                self.loop_variables.pop();
                code = done?;
                if self.exit.is_some() {
                    break;
                }
            }
            let folder = std::mem::replace(&mut self.machine.folder, folder);
            let after = self.values(&each.kind, items);
            self.machine.folder = folder;
            check_none_is_new(&values, after)?;
            if self.exit.is_some() {
                break;
            }
        }
        Ok(code)
    }

    /// The values that a loop has for its items.
    fn values(&mut self, kind: &LoopKind, items: &[TracedText]) -> Result<Vec<String>> {
        match (kind, items) {
            (LoopKind::Numbers, _) => self.numbers(items),
            (LoopKind::Tree(folder), _) => self.files_below(folder.as_ref(), items),
            (LoopKind::Folders, [item]) => self.matches(item, PathState::Folder),
            (_, [item]) => self.matches(item, PathState::File),
            _ => Ok(Vec::new()),
        }
    }

    /// A text with the values of the loops' variables, `%i`, or parts of their paths, `%~ni`.
    pub(super) fn filled(&self, text: &TracedText) -> Result<TracedText> {
        if self.loop_variables.is_empty() {
            return Ok(text.clone());
        }
        let characters: Vec<(char, usize)> = text.characters().collect();
        let mut out = TracedText::default();
        let mut next = 0;
        while let Some((c, at)) = characters.get(next).copied() {
            next += 1;
            let value = match c {
                '%' => self.loop_value(&characters[next..]),
                _ => Ok(None),
            };
            match value.map_err(|error| error.at_position(at))? {
                Some((value, length)) => {
                    next += length;
                    out.append(&TracedText::from_one(&value, at));
                    check_length(&out)?;
                }
                None => out.push(c, at),
            }
        }
        Ok(out)
    }

    /// The value of a loop's variable after a percent sign, if one is there, and the length of what it
    /// replaces.
    fn loop_value(&self, after: &[(char, usize)]) -> Result<Option<(String, usize)>> {
        let value = |name: char| {
            let mut variables = self.loop_variables.iter().rev();
            variables.find(|(own, _)| *own == name)
        };
        let first = after.first().map(|(c, _)| *c);
        if first != Some('~') {
            let value = first.and_then(value);
            return Ok(value.map(|(_, value)| (value.clone(), 1)));
        }
        let mut found = Vec::new();
        for (place, (c, _)) in after.iter().enumerate().skip(1) {
            found.extend(value(*c).map(|value| (place, value)));
            if !"fdpnxsatz".contains(c.to_ascii_lowercase()) {
                break;
            }
        }
        // The last letter that is a variable ends the modifiers, and may be one of them: %~ff.
        let Some((place, (name, value))) = found.last() else {
            return error::unclear("modifiers of the variable of for are unclear");
        };
        if found.iter().any(|(_, (other, _))| other != name) {
            return error::unclear("for which variable of for the modifiers are is unclear");
        }
        let modifiers = after[1..*place].iter().map(|(c, _)| c.to_ascii_lowercase());
        let value = modified(self.machine, value, &modifiers.collect::<String>())?;
        Ok(Some((value, place + 1)))
    }

    /// Files in a folder, or the working folder, and below it that match the patterns, folder by
    /// folder.
    fn files_below(
        &mut self,
        folder: Option<&TracedText>,
        items: &[TracedText],
    ) -> Result<Vec<String>> {
        let unsupported = || ScriptError::unclear("this form of for /r is not supported");
        let mut patterns = Vec::new();
        for item in items {
            let pattern = self.filled(item)?;
            let text = unquoted(pattern.as_str());
            if !text.contains(['*', '?']) || text.contains(['"', '\\', '/', ':']) {
                return Err(unsupported());
            }
            patterns.push(text.to_owned());
        }
        let top = match folder {
            None => self.machine.folder.clone(),
            Some(folder) => {
                let name = self.filled(folder)?.as_str().replace('"', "");
                // Other names are joined with the found ones as they are written.
                if name.get(1..3) != Some(":\\") || name.ends_with('\\') {
                    return Err(unsupported());
                }
                self.machine.path(&name)?
            }
        };
        match self.machine.files_below(top, &patterns, HIDDEN_OR_SYSTEM)? {
            Some(files) => Ok(files.iter().map(ImagePath::to_string).collect()),
            None => error::later(UNKNOWN_FILES),
        }
    }

    /// Expands an item of a loop's list: wildcards match files, or folders with `/d`.
    fn matches(&self, item: &TracedText, wanted: PathState) -> Result<Vec<String>> {
        let item = self.filled(item)?;
        if !item.as_str().contains(['*', '?']) {
            return Ok(vec![item.as_str().to_owned()]);
        }
        let item = unquoted(item.as_str());
        if item.contains('"') {
            return error::unclear("wildcards beside quotes are not supported here");
        }
        let Paths::Pattern { folder, pattern } = self.machine.paths(item, Wildcards::Cmd)? else {
            return Ok(Vec::new());
        };
        let prefix = item.rfind(['\\', '/']).map_or("", |at| &item[..=at]);
        let Some(paths) = self
            .machine
            .glob(&folder, &pattern, Wildcards::Cmd, HIDDEN_OR_SYSTEM)?
        else {
            return error::later(UNKNOWN_FILES);
        };
        let paths = self.machine.with_state(paths, |state| state == wanted)?;
        let values = paths.iter().map(|path| format!("{prefix}{}", path.name()));
        Ok(values.collect())
    }

    /// Numbers of `for /l %i in (start,step,end)`.
    fn numbers(&self, items: &[TracedText]) -> Result<Vec<String>> {
        let mut all = Vec::new();
        for item in items {
            all.push(self.filled(item)?.as_str().parse::<i32>().ok());
        }
        let [Some(start), Some(step), Some(end)] = all.as_slice() else {
            return error::unclear("expected three numbers for for /l");
        };
        let mut found = Vec::new();
        let mut number = *start;
        while (*step > 0 && number <= *end) || (*step < 0 && number >= *end) {
            if found.len() == LONGEST_LOOP {
                return error::unclear("the loop is too long");
            }
            found.push(number.to_string());
            let Some(next) = number.checked_add(*step) else {
                break;
            };
            number = next;
        }
        match step {
            0 => error::unclear("the loop does not end"),
            _ => Ok(found),
        }
    }
}

/// Refuses a loop that makes files which its own patterns match: Windows looks for the next file after
/// each turn, and may find them.
fn check_none_is_new(values: &[String], after: Result<Vec<String>>) -> Result<()> {
    let after = match after {
        // It is checked once the downloads are known.
        Err(error) if error.kind == ScriptErrorKind::Deferred => return Ok(()),
        after => after?,
    };
    let known: HashSet<String> = values.iter().map(|value| value.to_lowercase()).collect();
    match after.iter().find(|it| !known.contains(&it.to_lowercase())) {
        None => Ok(()),
        Some(new) => Err(ScriptError::unclear(format!(
            "the loop makes {new}, which its items match, and Windows may run it for that, too"
        ))
        .help("give new files another folder or extension")),
    }
}

/// An item without the quotes around it, which its values do not have.
fn unquoted(item: &str) -> &str {
    let inside = item.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    inside.unwrap_or(item)
}
