//! Cmdlets that write and read text, with their default encodings.

use super::super::error::{self, Ends, Result, ScriptError};
use super::super::image::{EntryKind, ImageAction, Lookup, PendingDownload};
use super::super::process::{PathState, READ_ONLY, check_no_wildcards, is_same};
use super::ast::CommandAst;
use super::drive::path_of;
use super::eval::Shell;
use super::parameters::ParameterSet;
use super::value::{Input, PsValue};

const CONTENT: ParameterSet = ParameterSet(
    "[path] literalpath=pspath=lp [value] encoding force? nonewline? passthru! filter! exclude!",
);

const OUT_FILE: ParameterSet = ParameterSet(
    "[filepath] literalpath=pspath=lp [encoding] inputobject width force? nonewline? append? \
     noclobber=nooverwrite!",
);

const GET: ParameterSet =
    ParameterSet("[path] literalpath=pspath=lp encoding raw? readcount! exclude!");

/// Windows PowerShell may wrap longer lines when it writes output to a file.
const WIDTH: usize = 79;

/// How a cmdlet writes to an existing file.
#[derive(Debug, Clone, Copy)]
pub(super) struct WriteMode {
    pub(super) appends: bool,
    /// True if it writes to a read-only file.
    pub(super) is_forced: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    /// Non-ASCII characters depend on the language of Windows.
    Ascii,
    Utf8,
    Utf8WithMark,
    Utf16,
}

impl Encoding {
    /// The encoding that a cmdlet names. PowerShell 7 has one default, Windows PowerShell several.
    fn named(name: Option<&str>, is_core: bool, old: Self) -> Result<Self> {
        let Some(name) = name else {
            return Ok(if is_core { Self::Utf8 } else { old });
        };
        Ok(match name.to_lowercase().as_str() {
            "ascii" | "default" | "oem" => Self::Ascii,
            "utf8" | "utf8nobom" if is_core => Self::Utf8,
            "utf8bom" if is_core => Self::Utf8WithMark,
            "utf8" => Self::Utf8WithMark,
            "unicode" | "utf16" => Self::Utf16,
            other => return error::unclear(format!("unsupported encoding {other:?}")),
        })
    }

    fn bytes(self, text: &str, is_start: bool) -> Result<Vec<u8>> {
        let mark: &[u8] = match self {
            Self::Utf8WithMark => &[0xef, 0xbb, 0xbf],
            Self::Utf16 => &[0xff, 0xfe],
            Self::Ascii | Self::Utf8 => &[],
        };
        let mut bytes = if is_start { mark.to_vec() } else { Vec::new() };
        match self {
            Self::Ascii if !text.is_ascii() => {
                return error::unclear(
                    "the encoding of non-ASCII characters depends on the Windows code page",
                );
            }
            Self::Utf16 => bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes)),
            _ => bytes.extend_from_slice(text.as_bytes()),
        }
        Ok(bytes)
    }
}

impl Shell<'_, '_> {
    fn write_text(
        &mut self,
        file: &str,
        text: &str,
        encoding: Encoding,
        mode: WriteMode,
    ) -> Result<()> {
        let WriteMode { appends, is_forced } = mode;
        let file = self.file_path(file, "it does not write to a file")?;
        check_no_wildcards(&file, &['*', '?', '['])?;
        let path = self.machine.file_path(&file)?;
        if self.read_files.iter().any(|read| is_same(read, &path)) {
            return Err(ScriptError::refused(format!(
                "{path} is read and written in one pipeline: Windows empties it or fails"
            ))
            .help("put the part that reads the file in parentheses"));
        }
        self.machine.ensure_parent(&path, false)?;
        if !is_forced {
            let checked = self.machine.check_attributes(&path, READ_ONLY);
            checked.map_err(|error| error.help("add -Force"))?;
        }
        let now = if appends {
            self.machine.path_state(&path)?
        } else {
            match self.machine.entry(&path) {
                Lookup::Present(EntryKind::Folder) => PathState::Folder,
                _ => PathState::File,
            }
        };
        match now {
            PathState::Folder => return error::fails(format!("{path} is a folder")),
            PathState::Deferred if appends => {
                return error::later("the file that it appends to is downloaded later");
            }
            _ => {}
        }
        if !appends || now == PathState::Absent {
            let content = encoding.bytes(text, true)?;
            return self.apply(ImageAction::Write { path, content });
        }
        // An existing file keeps its encoding where the cmdlet detects it.
        match self.machine.image.content(&path) {
            Lookup::Present(before) if before.is_ascii() || encoding != Encoding::Ascii => {
                // An empty file gets the byte order mark, too.
                let content = encoding.bytes(text, before.is_empty())?;
                self.apply(ImageAction::Append { path, content })
            }
            Lookup::Present(_) => {
                error::unclear("the file that it appends to has another encoding")
            }
            _ => error::unknown(format!("the encoding of {path} is unknown")),
        }
    }

    pub(super) fn set_content(
        &mut self,
        command: &CommandAst,
        input: Input,
        appends: bool,
    ) -> Result<()> {
        let given = self.bind_parameters(command, &CONTENT)?;
        let file = path_of(&given)?.ok_or_else(|| ScriptError::unclear("no file given"))?;
        let value = match (given.value("value"), input) {
            (Some(_), Some(_)) => {
                return error::unclear("both -Value and the pipeline give content");
            }
            (Some(value), None) => value.clone(),
            // Windows opens the file at the first item.
            (None, Some(input)) if input.is_empty() => return Ok(()),
            (None, Some(input)) => input,
            (None, None) => return error::unclear("no content given"),
        };
        let name = given.text("encoding")?;
        let encoding = Encoding::named(name.as_deref(), self.is_core, Encoding::Ascii)?;
        if appends && encoding != Encoding::Ascii && !self.is_core {
            return error::unclear("appending with an encoding is not supported");
        }
        let text = lines(&value, !given.has("nonewline"))?;
        let mode = WriteMode {
            appends,
            is_forced: given.has("force"),
        };
        self.write_text(&file, &text, encoding, mode)
    }

    pub(super) fn out_file_cmdlet(&mut self, command: &CommandAst, input: Input) -> Result<()> {
        let given = self.bind_parameters(command, &OUT_FILE)?;
        let file = match given.text("filepath")? {
            Some(file) => file,
            None => given.required("literalpath")?,
        };
        let value = match (given.value("inputobject"), input) {
            (Some(_), Some(_)) => {
                return error::unclear("both -InputObject and the pipeline give content");
            }
            (Some(value), None) => value.clone(),
            (None, input) => input.unwrap_or(PsValue::Null),
        };
        if given.has("nonewline") {
            return error::option("-NoNewline");
        }
        let encoding = given.text("encoding")?;
        let mode = WriteMode {
            appends: given.has("append"),
            is_forced: given.has("force"),
        };
        let done = self.out_file(&file, &value, mode, encoding.as_deref());
        done.map_err(|error| error.ending(Ends::Statement))
    }

    /// Writes output to a file as `>` and `Out-File` do.
    pub(super) fn out_file(
        &mut self,
        file: &str,
        value: &PsValue,
        mode: WriteMode,
        name: Option<&str>,
    ) -> Result<()> {
        let encoding = Encoding::named(name, self.is_core, Encoding::Utf16)?;
        let text = lines(value, true)?;
        if !self.is_core && text.lines().any(|line| line.chars().count() > WIDTH) {
            return error::unclear(
                "lines of this length may be wrapped in the file; use Set-Content",
            );
        }
        self.write_text(file, &text, encoding, mode)
    }

    pub(super) fn get_content(&mut self, command: &CommandAst) -> Result<PsValue> {
        let given = self.bind_parameters(command, &GET)?;
        let file = path_of(&given)?.ok_or_else(|| ScriptError::unclear("no file given"))?;
        let file = self.file_path(&file, "it does not read a file")?;
        let path = self.machine.path(&file)?;
        self.read_files.push(path.clone());
        let content = match self.machine.path_state(&path)? {
            PathState::Absent | PathState::Folder => {
                return error::fails(format!("file {path} not found"));
            }
            PathState::Deferred => Lookup::Deferred(PendingDownload),
            PathState::File => self.machine.image.content(&path),
        };
        let content = match content {
            Lookup::Present(content) if content.is_ascii() => content,
            Lookup::Present(_) => return Ok(PsValue::opaque(format!("{path} is not plain text"))),
            Lookup::Deferred(PendingDownload) => {
                let error = ScriptError::later(format!("the content of {path} is used"));
                return Ok(PsValue::Opaque(error));
            }
            Lookup::Absent | Lookup::Unknown => {
                return Ok(PsValue::Opaque(self.machine.unknown_content(&path)));
            }
        };
        self.machine.hold(content.len())?;
        let text = String::from_utf8_lossy(&content);
        if given.has("raw") && text.is_empty() {
            return Ok(PsValue::Null);
        }
        if given.has("raw") {
            return Ok(PsValue::text_value(text));
        }
        Ok(PsValue::from_items(
            text.lines().map(PsValue::text_value).collect(),
        ))
    }
}

/// Formats a value as lines.
fn lines(value: &PsValue, ends: bool) -> Result<String> {
    let mut text = String::new();
    for item in value.clone().items() {
        match &item {
            PsValue::Text(_) | PsValue::Number(_) | PsValue::Bool(_) => {}
            PsValue::Null => continue,
            PsValue::Opaque(error) => return Err(error.clone()),
            _ => return error::unclear("writing an object as text is not supported"),
        }
        text.push_str(&item.text()?);
        if ends {
            text.push_str("\r\n");
        }
    }
    Ok(text)
}
