//! Shortcuts: the `Shortcut` table, and the files of the shell.
//!
//! The format is that of \[MS-SHLLINK\]. A link without an item list is found by its local path,
//! which the shell resolves when it opens the link.

use std::collections::BTreeSet;

use super::builder::Builder;
use super::database::Row;
use super::error::MsiError;
use super::plan::Shortcut;
use super::session::{Session, join, long_name};

const HAS_LINK_INFO: u32 = 0x02;
const HAS_NAME: u32 = 0x04;
const HAS_WORKING_DIR: u32 = 0x10;
const HAS_ARGUMENTS: u32 = 0x20;
const HAS_ICON: u32 = 0x40;
const IS_UNICODE: u32 = 0x80;

impl Session<'_> {
    /// `CreateShortcuts`.
    pub(crate) fn create_shortcuts(&mut self, plan: &mut Builder) -> Result<(), MsiError> {
        let mut created = BTreeSet::new();
        for row in self.installed_rows("Shortcut") {
            let Some(folder) = self.folder_or_property(row.text("Directory_"))? else {
                continue;
            };
            let written = row.text("Target");
            // A feature's shortcut leads to the key file of the component.
            let target = if !written.contains('[') && self.features.contains_key(written) {
                self.key_file(&row)?
            } else {
                self.format(written)?
            };
            let name = long_name(row.text("Name"));
            let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
            let is = |own: &str| extension.eq_ignore_ascii_case(own);
            let end = if is("lnk") || is("url") { "" } else { ".lnk" };
            let name = format!("{name}{end}");
            let shortcut = Shortcut {
                path: join(&folder, &name)?,
                target,
                arguments: self.format(row.text("Arguments"))?,
            };
            let link = self.link(&row, &shortcut)?;
            plan.bytes(shortcut.path.clone(), link)?;
            plan.rest.shortcuts.push(shortcut);
            created.insert(row.text("Shortcut"));
        }
        let mut properties = self.database.rows("MsiShortcutProperty");
        if properties.any(|row| created.contains(row.text("Shortcut_"))) {
            let note = "the properties of shortcuts (MsiShortcutProperty) are left out";
            self.notes.push(note.to_owned());
        }
        Ok(())
    }

    fn link(&self, row: &Row<'_>, shortcut: &Shortcut) -> Result<Vec<u8>, MsiError> {
        let working = row
            .optional("WkDir")
            .map(|key| self.folder_or_property(key));
        let working = working.transpose()?.flatten().map(|it| it.to_string());
        let icon = row.optional("Icon_").map(|icon| self.icon_path(icon));
        let texts = [
            (HAS_NAME, self.format(row.text("Description"))?),
            (HAS_WORKING_DIR, working.unwrap_or_default()),
            (HAS_ARGUMENTS, shortcut.arguments.clone()),
            (HAS_ICON, icon.unwrap_or_default()),
        ];
        let flags = texts.iter().filter(|(_, text)| !text.is_empty());
        let flags = flags.fold(HAS_LINK_INFO | IS_UNICODE, |all, (flag, _)| all | flag);
        let mut link = header(flags, row);
        link.extend(link_info(&shortcut.target));
        for (_, text) in texts.iter().filter(|(_, text)| !text.is_empty()) {
            let units: Vec<u16> = text.encode_utf16().take(usize::from(u16::MAX)).collect();
            link.extend(u16::try_from(units.len()).unwrap_or(u16::MAX).to_le_bytes());
            link.extend(units.into_iter().flat_map(u16::to_le_bytes));
        }
        link.extend([0; 4]);
        Ok(link)
    }
}

/// The fixed part of a link, without times and attributes.
fn header(flags: u32, row: &Row<'_>) -> Vec<u8> {
    const CLASS: [u8; 16] = [
        0x01, 0x14, 0x02, 0, 0, 0, 0, 0, 0xC0, 0, 0, 0, 0, 0, 0, 0x46,
    ];
    const NORMAL: u32 = 1;
    let hotkey = row.flags("Hotkey").to_le_bytes();
    let icon = row.number("IconIndex").unwrap_or_default();
    let show = row.number("ShowCmd").map_or(NORMAL, i32::cast_unsigned);
    let mut header = 0x4c_u32.to_le_bytes().to_vec();
    header.extend(CLASS);
    header.extend(flags.to_le_bytes());
    // Attributes, three times and the size of the target.
    header.extend([0; 32]);
    header.extend(icon.to_le_bytes());
    header.extend(show.to_le_bytes());
    header.extend([hotkey[0], hotkey[1]]);
    header.extend([0; 10]);
    header
}

/// The path of the target on a fixed drive, as ANSI and Unicode text.
fn link_info(target: &str) -> Vec<u8> {
    const HEADER: u32 = 0x24;
    const FIXED_DRIVE: u32 = 3;
    let volume_id: Vec<u8> = [0x11, FIXED_DRIVE, 0, 0x10]
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .chain([0])
        .collect();
    let ansi = |text: &str| -> Vec<u8> {
        let bytes = text
            .chars()
            .map(|c| if c.is_ascii() { c as u8 } else { b'?' });
        bytes.chain([0]).collect()
    };
    let unicode = |text: &str| -> Vec<u8> {
        text.encode_utf16()
            .chain([0])
            .flat_map(u16::to_le_bytes)
            .collect()
    };
    let parts = [
        volume_id,
        ansi(target),
        ansi(""),
        unicode(target),
        unicode(""),
    ];
    let mut at = HEADER;
    let mut offsets = Vec::new();
    for part in &parts {
        offsets.push(at);
        at += u32::try_from(part.len()).unwrap_or_default();
    }
    let [volume, base, suffix, base_unicode, suffix_unicode] = offsets[..] else {
        return Vec::new();
    };
    let words = [
        at, HEADER, 1, volume, base, 0, suffix, base_unicode, suffix_unicode,
    ];
    let mut info: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    info.extend(parts.concat());
    info
}
