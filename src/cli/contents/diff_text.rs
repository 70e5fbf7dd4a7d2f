//! Differences of images as text: a summary of each kind, then a tree.

use wincimg_inspect::contents::{ContentChange, FileAspect, KeyDifference, ValueDifference};

use super::diff::{ConfigDifference, Differences, FileRow, ImageDifference, LayerRow};
use super::view::{Colours, FileView, shortened, value_name};
use crate::cli::prelude::*;

pub(super) fn write(found: &Differences, colours: Colours, out: &mut dyn Write) -> io::Result<()> {
    let names = format!("{} → {}", found.before, found.after);
    writeln!(out, "{}", colours.title(UntrustedText(names)))?;
    for platform in &found.only_before {
        let line = colours.change(ContentChange::Removed, UntrustedText(platform));
        writeln!(out, "{line}")?;
    }
    for platform in &found.only_after {
        let line = colours.change(ContentChange::Added, UntrustedText(platform));
        writeln!(out, "{line}")?;
    }
    if !found.index.is_empty() {
        write_settings("index", &found.index, colours, out)?;
    }
    for image in &found.images {
        writeln!(out, "{}", colours.title(UntrustedText(&image.platform)))?;
        write_image(image, colours, out)?;
    }
    Ok(())
}

fn write_image(image: &ImageDifference, colours: Colours, out: &mut dyn Write) -> io::Result<()> {
    let (old, new) = (&image.before, &image.after);
    let mut rows = Rows { out, width: 10 };
    if old.digest == new.digest {
        return rows.row("digest", format_args!("{}: identical", old.digest));
    }
    rows.row("digest", format_args!("{} → {}", old.digest, new.digest))?;
    let (size, before, after) = (sizes(old.size, new.size), old.layers, new.layers);
    rows.row("size", format_args!("{size}, {before} → {after} layers"))?;
    write_settings("config", &image.config, colours, rows.out)?;
    let files = counts(image.files.iter().map(|it| it.change));
    let content = sizes(old.content, new.content);
    rows.row("files", format_args!("{files}; {content}"))?;
    write_files(&image.files, "    ", colours, rows.out)?;
    let keys = counts(image.registry.iter().map(|it| it.change));
    rows.row("registry", keys)?;
    for key in &image.registry {
        write_key(key, colours, rows.out)?;
    }
    if let Some(layers) = &image.layers {
        rows.row("layers", counts(layers.iter().map(|it| it.change)))?;
        for layer in layers {
            write_layer(layer, colours, rows.out)?;
        }
    }
    Ok(())
}

fn write_settings(
    name: &str,
    settings: &[ConfigDifference],
    colours: Colours,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut rows = Rows { out, width: 10 };
    rows.row(name, counts(settings.iter().map(|it| it.change)))?;
    for setting in settings {
        let line = colours.change(setting.change, in_words(setting));
        writeln!(rows.out, "    {line}")?;
    }
    Ok(())
}

/// `1.0 MiB → 1.5 MiB (+512 KiB)`.
fn sizes(old: u64, new: u64) -> String {
    let by = BinaryBytes(old.abs_diff(new));
    let (old_size, new_size) = (BinaryBytes(old), BinaryBytes(new));
    match old.cmp(&new) {
        std::cmp::Ordering::Equal => old_size.to_string(),
        std::cmp::Ordering::Less => format!("{old_size} → {new_size} (+{by})"),
        std::cmp::Ordering::Greater => format!("{old_size} → {new_size} (-{by})"),
    }
}

/// `1 added, 2 changed`, or `equal`.
fn counts(changes: impl Iterator<Item = ContentChange>) -> String {
    let mut numbers = [0_usize; 4];
    for change in changes {
        numbers[match change {
            ContentChange::Added => 0,
            ContentChange::Changed => 1,
            ContentChange::Removed => 2,
            ContentChange::Rewritten => 3,
        }] += 1;
    }
    let words = ["added", "changed", "removed", "rewritten"];
    tally(std::iter::zip(numbers, words), "equal")
}

fn in_words(found: &ConfigDifference) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let sides = [&found.before, &found.after];
    let sides: Vec<String> = sides.into_iter().flatten().map(text).collect();
    let line = format!("{}: {}", found.setting, sides.join(" → "));
    UntrustedText(line).to_string()
}

/// Writes files as a tree, with the folders above them.
fn write_files(
    files: &[FileRow],
    start: &str,
    colours: Colours,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut above: Vec<&str> = Vec::new();
    for file in files {
        let path = file.path.trim_end_matches('\\');
        let names: Vec<&str> = path.split('\\').collect();
        let Some((name, folders)) = names.split_last() else {
            continue;
        };
        // Layers may spell a folder differently.
        let is_same = |(one, other): &(&&str, &&str)| one.to_lowercase() == other.to_lowercase();
        let shared = above.iter().zip(folders).take_while(is_same).count();
        above.truncate(shared);
        for folder in &folders[shared..] {
            let indent = "  ".repeat(above.len());
            let folder_name = UntrustedText(format!(r"{folder}\")).to_string();
            writeln!(out, "{start}{indent}  {}", colours.folder(folder_name))?;
            above.push(folder);
        }
        let sides = [&file.before, &file.after].map(Option::as_ref);
        let is_folder = |view: &FileView| view.kind == "folder";
        let name = if sides[1].or(sides[0]).is_some_and(is_folder) {
            above.push(name);
            format!(r"{name}\")
        } else {
            (*name).to_owned()
        };
        let size = match sides.map(|view| view?.size) {
            [Some(old), Some(new)] if old != new => {
                format!("  {} → {}", BinaryBytes(old), BinaryBytes(new))
            }
            [_, Some(size)] | [Some(size), None] => format!("  {}", BinaryBytes(size)),
            [None, None] => String::new(),
        };
        let indent = "  ".repeat(folders.len());
        let line = format!("{name}{size}{}", aspects_in_words(file));
        let line = colours.change(file.change, UntrustedText(line));
        writeln!(out, "{start}{indent}{line}")?;
        let is_in_both = file.before.is_some() && file.after.is_some();
        if is_in_both && !file.differs.contains(&FileAspect::Rights) {
            continue;
        }
        for (side, mark) in sides.into_iter().zip(['-', '+']) {
            if let Some(security) = side.and_then(|view| view.security.as_ref()) {
                writeln!(out, "{start}{indent}    {mark} {}", UntrustedText(security))?;
            }
        }
    }
    Ok(())
}

/// What differs, unless it is the content alone: `  attributes +hidden, rights`.
fn aspects_in_words(file: &FileRow) -> String {
    let (Some(old), Some(new)) = (&file.before, &file.after) else {
        return String::new();
    };
    let attributes = || {
        let only = |one: &FileView, other: &FileView, mark: &str| {
            let names = one.attributes.iter();
            let names = names.filter(|name| !other.attributes.contains(name));
            let words: Vec<String> = names.map(|name| format!(" {mark}{name}")).collect();
            words.concat()
        };
        format!("attributes{}{}", only(new, old, "+"), only(old, new, "-"))
    };
    let target = |side: &FileView| side.target.clone().unwrap_or_default();
    let words = file.differs.iter().map(|aspect| match aspect {
        FileAspect::Kind => format!("{} → {}", old.kind, new.kind),
        FileAspect::Content => "content".to_owned(),
        FileAspect::Target => format!("{} → {}", target(old), target(new)),
        FileAspect::Attributes => attributes(),
        FileAspect::Rights => "rights".to_owned(),
    });
    match file.differs.as_slice() {
        [] | [FileAspect::Content] => String::new(),
        _ => format!("  {}", words.collect::<Vec<_>>().join(", ")),
    }
}

fn write_key(key: &KeyDifference, colours: Colours, out: &mut dyn Write) -> io::Result<()> {
    let line = colours.change(key.change, UntrustedText(&key.path));
    writeln!(out, "    {line}")?;
    for value in &key.values {
        let line = UntrustedText(value_in_words(value)).to_string();
        writeln!(out, "        {}", colours.change(value.change, line))?;
    }
    for (security, mark) in key.security.iter().flatten().zip(['-', '+']) {
        writeln!(out, "        {mark} {}", UntrustedText(security))?;
    }
    Ok(())
}

fn value_in_words(value: &ValueDifference) -> String {
    let sides = [&value.before, &value.after];
    let sides: Vec<String> = sides.into_iter().flatten().map(shortened).collect();
    let name = value_name(&value.name);
    if sides.is_empty() {
        name.to_owned()
    } else {
        format!("{name} = {}", sides.join(" → "))
    }
}

fn write_layer(layer: &LayerRow, colours: Colours, out: &mut dyn Write) -> io::Result<()> {
    let step = layer.created_by.as_deref().unwrap_or_default();
    let (number, digest) = (layer.layer, &layer.digest);
    let line = format!("{number}  {digest}  {}  {step}", BinaryBytes(layer.size));
    let line = UntrustedText(line.trim_end()).to_string();
    writeln!(out, "    {}", colours.change(layer.change, line))?;
    write_files(&layer.files, "      ", colours, out)?;
    for edit in &layer.registry {
        writeln!(out, "        {}", UntrustedText(edit))?;
    }
    Ok(())
}
