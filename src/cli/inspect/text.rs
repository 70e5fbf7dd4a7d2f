//! Text report of an inspection.

use wincimg_images::shim::{Shim, ShimMode};
use wincimg_images::wrapper::Wrapper;
use wincimg_inspect::{
    EntryKind, ImageFacts, Inspection, LayerFacts, LayerReadStatus, OtherEntry, RegistryReport,
    ShutdownSetting, ShutdownTimes, SkipReason,
};
use wincimg_oci::document::media_type;
use wincimg_oci::document::media_type::LayerCompression;
use wincimg_registry::RegistryEdit;
use wincimg_windows::quoting::argv::quote;
use wincimg_windows::shutdown::ShutdownValue;
use wincimg_windows::update::Update;

use crate::cli::prelude::*;

pub(super) fn write(
    image: &ImageSource,
    inspection: &Inspection,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{}", UntrustedText(image))?;
    let mut rows = Rows { out, width: 13 };
    if let [only] = inspection.images.as_slice()
        && only.digest == inspection.digest
    {
        rows.row("platform", only.platform())?;
        return write_image(only, &mut rows);
    }
    rows.row("index", &inspection.digest)?;
    let count = inspection.images.len();
    rows.row("images", format_args!("{count} shown"))?;
    if !inspection.others.is_empty() {
        rows.row("others", others(&inspection.others))?;
    }
    rows.list("annotations", assignments(&inspection.annotations))?;
    for image in &inspection.images {
        writeln!(rows.out, "\n{}", UntrustedText(image.platform()))?;
        rows.list("warning", entry_warnings(image, inspection))?;
        write_image(image, &mut rows)?;
    }
    Ok(())
}

/// Warnings about entries that contradict the image's configuration: runtimes select by them.
fn entry_warnings(image: &ImageFacts, inspection: &Inspection) -> Vec<String> {
    let own = image.os_version.as_deref().unwrap_or_default();
    let has_version = image.is_windows() && !own.is_empty();
    let entries = inspection.entries.iter().flatten();
    let stated = entries
        .filter(|entry| entry.digest == image.digest)
        .filter_map(|entry| entry.platform.as_ref());
    let mut warnings = Vec::new();
    for stated in stated {
        let (os, architecture) = (&stated.os, &stated.architecture);
        if (os, architecture) != (&image.os, &image.architecture) {
            warnings.push(format!("index entry says {os}/{architecture}"));
        }
        match stated.os_version.as_deref() {
            _ if !has_version => {}
            None | Some("") => warnings.push("index entry has no os.version".to_owned()),
            Some(version) if version != own => {
                warnings.push(format!("index entry says {version}"));
            }
            Some(_) => {}
        }
    }
    warnings
}

/// Platforms of the images that are not shown, and numbers of other entries.
fn others(others: &[OtherEntry]) -> String {
    let mut parts: Vec<String> = others
        .iter()
        .filter(|other| matches!(other.kind, EntryKind::Image))
        .map(|other| {
            other
                .platform
                .clone()
                .unwrap_or_else(|| "an unknown platform".to_owned())
        })
        .collect();
    let mut add = |what: &str, is: fn(&EntryKind) -> bool| {
        let number = others.iter().filter(|other| is(&other.kind)).count();
        if number > 0 {
            parts.push(count(number, what));
        }
    };
    add("attestation", |kind| {
        matches!(kind, EntryKind::Attestation { .. })
    });
    add("artifact", |kind| matches!(kind, EntryKind::Artifact));
    add("missing entry", |kind| {
        matches!(kind, EntryKind::Missing { .. })
    });
    add("unreadable entry", |kind| {
        matches!(kind, EntryKind::Unreadable { .. })
    });
    parts.join(", ")
}

fn write_image(image: &ImageFacts, rows: &mut Rows<'_>) -> io::Result<()> {
    rows.row("digest", &image.digest)?;
    rows.each("release", release(image))?;
    rows.each("created", image.created.as_ref())?;
    rows.each("base", base(image))?;
    let line = |arguments: &Option<Vec<String>>| {
        let arguments = arguments.as_ref()?;
        (!arguments.is_empty()).then(|| command_line(arguments, image.args_escaped))
    };
    rows.each("entry point", line(&image.entrypoint))?;
    rows.each("command", line(&image.cmd))?;
    rows.each("shim", image.shim.as_ref().map(shim))?;
    // The shim alone has a line.
    if image.wrappers != [Wrapper::Shim] {
        let names: Vec<_> = image.wrappers.iter().map(|it| it.name()).collect();
        let names = (!names.is_empty()).then(|| names.join(", then "));
        rows.each("runs under", names)?;
    }
    rows.each("shell", line(&image.shell))?;
    rows.each("user", image.user.as_ref())?;
    rows.each("directory", image.working_dir.as_ref())?;
    rows.list("ports", &image.ports)?;
    rows.list("volumes", &image.volumes)?;
    rows.list("environment", &image.env)?;
    let check = image.healthcheck.as_ref();
    rows.each("health check", check.and_then(health_check))?;
    rows.list("on build", &image.on_build)?;
    rows.list("annotations", assignments(&image.annotations))?;
    rows.list("labels", assignments(&image.labels))?;
    if let Some(shutdown) = &image.shutdown {
        write_shutdown(shutdown, rows)?;
    }
    let (count, size) = (image.layers.len(), BinaryBytes(image.size));
    rows.row("layers", format_args!("{count}, {size}"))?;
    for (number, layer) in (1..).zip(&image.layers) {
        let size = BinaryBytes(layer.size).to_string();
        let marks = marks(layer).join(", ");
        let (digest, marks) = (&layer.digest, UntrustedText(marks));
        writeln!(rows.out, "    {number:>3}  {digest}  {size:>11}  {marks}")?;
    }
    if let Some(waste) = &image.waste {
        super::waste::write(waste, rows.out)?;
    }
    if let Some(report) = &image.registry {
        write_registry(report, rows)?;
    }
    Ok(())
}

fn health_check(check: &Value) -> Option<String> {
    let words = check.get("Test")?.as_array()?.iter();
    let words: Vec<&str> = words.filter_map(Value::as_str).collect();
    match words.as_slice() {
        ["NONE", ..] => Some("none, the base's is off".to_owned()),
        ["CMD-SHELL", line] => Some((*line).to_owned()),
        ["CMD", arguments @ ..] => {
            let arguments: Vec<String> = arguments.iter().copied().map(str::to_owned).collect();
            Some(command_line(&arguments, false))
        }
        _ => None,
    }
}

/// Behaviour of the shim, and its settings that differ from the defaults.
fn shim(shim: &Shim) -> String {
    if let Some(problem) = &shim.problem {
        return format!("will not start: {problem}");
    }
    let mut words = vec![
        match shim.mode {
            ShimMode::Pause => "waits for a stop request",
            ShimMode::Help => "prints its help",
            ShimMode::Run | ShimMode::Refuse => "stops the program gracefully",
        }
        .to_owned(),
    ];
    if let Some(settings) = &shim.settings {
        let seconds = |seconds: f64| format!("{seconds} s");
        let stop = settings.stop_timeout;
        words.extend(stop.map(|time| format!("within {}", seconds(time))));
        if settings.drain > 0.0 {
            words.push(format!("after draining for {}", seconds(settings.drain)));
        }
        if shim.mode == ShimMode::Run {
            words.push(format!("by {}", settings.stop_signal));
        }
        let commands = settings.pre_stop.iter();
        words.extend(commands.map(|command| format!("first running {command}")));
        let services = settings.service.iter();
        words.extend(services.map(|service| format!("with service {service}")));
        let files = settings.logs.iter().chain(&settings.log_config);
        words.extend(files.map(|file| format!("printing {file}")));
        if !settings.kill_tree {
            words.push("leaving its children alone".to_owned());
        }
    }
    words.join(", ")
}

fn release(image: &ImageFacts) -> Option<String> {
    let name = image.release?;
    Some(match &image.update {
        Some(Update {
            kb: Some(kb), date, ..
        }) => format!("{name}, with {kb} of {date}"),
        Some(Update { kb: None, date, .. }) => format!("{name}, as released on {date}"),
        None => name.to_owned(),
    })
}

fn base(image: &ImageFacts) -> Option<String> {
    let base = image.base.as_ref()?;
    Some(match (&base.name, &base.digest) {
        (Some(name), Some(digest)) if !name.contains('@') => format!("{name}@{digest}"),
        (Some(name), _) => name.clone(),
        (None, digest) => digest.clone()?,
    })
}

/// Labels or annotations, without those of the base, which has its own line.
fn assignments(all: &BTreeMap<String, String>) -> impl Iterator<Item = String> {
    all.iter()
        .filter(|(name, _)| !name.starts_with("org.opencontainers.image.base."))
        .map(|(name, value)| format!("{name} = {value}"))
}

fn command_line(arguments: &[String], escaped: bool) -> String {
    if escaped {
        return arguments.join(" ");
    }
    joined(arguments.iter().map(|argument| quote(argument)), " ")
}

fn write_shutdown(shutdown: &ShutdownTimes, rows: &mut Rows<'_>) -> io::Result<()> {
    let mut lines = vec![format!("{} s", shutdown.seconds)];
    if shutdown.is_default() {
        lines[0] += ", the default of Windows";
    }
    for (setting, found) in
        std::iter::zip(ShutdownValue::BOTH, [&shutdown.process, &shutdown.service])
    {
        if let Some(ShutdownSetting { data, layer, .. }) = found {
            lines.push(format!("{} = {data}, layer {layer}", setting.name()));
        }
    }
    for warning in &shutdown.warnings {
        lines.push(format!("warning: {warning}"));
    }
    if !shutdown.complete {
        lines.push("may be wrong: not every layer was read".to_owned());
    }
    rows.list("shutdown", lines)
}

fn marks(layer: &LayerFacts) -> Vec<String> {
    let stated = match media_type::compression(&layer.media_type) {
        Some(LayerCompression::Gzip) => "gzip",
        Some(LayerCompression::Zstd) => "zstd",
        Some(LayerCompression::None) => "plain",
        None => &layer.media_type,
    };
    let mut compression = stated.to_owned();
    if let Some(found) = layer.stored_as {
        compression = format!("{found}, labelled {stated}");
    }
    let mut marks = vec![compression];
    marks.extend(other_marks(layer).into_iter().map(str::to_owned));
    marks
}

fn other_marks(layer: &LayerFacts) -> Vec<&'static str> {
    let mut marks = Vec::new();
    if layer.foreign {
        marks.push("foreign");
    }
    match layer.reading {
        LayerReadStatus::Part => marks.push("read in part, digest not checked"),
        LayerReadStatus::Failed => marks.push("unreadable"),
        LayerReadStatus::Skipped {
            reason: SkipReason::Large | SkipReason::ForeignBytes,
        } => marks.push("not read"),
        LayerReadStatus::Whole | LayerReadStatus::Skipped { .. } => {}
    }
    marks
}

fn write_registry(report: &RegistryReport, rows: &mut Rows<'_>) -> io::Result<()> {
    let RegistryReport::Changes {
        layers,
        result,
        over_base,
    } = report
    else {
        return Ok(());
    };
    let changed = layers.iter().filter(|layer| !layer.changes.is_empty());
    let edits: usize = changed.clone().map(|layer| layer.changes.len()).sum();
    rows.row("registry", count(edits, "change"))?;
    for layer in changed.clone() {
        writeln!(rows.out, "    layer {}", layer.layer)?;
        write_edits(&layer.changes, rows.out)?;
    }
    if *over_base {
        writeln!(rows.out, "    in a container")?;
        write_edits(result, rows.out)?;
    } else if changed.count() > 1 {
        writeln!(rows.out, "    in effect")?;
        write_edits(result, rows.out)?;
    }
    let mut others = layers.iter().filter(|layer| !layer.other_hives.is_empty());
    others.try_for_each(|layer| {
        let names = layer.other_hives.join(", ");
        let (number, names) = (layer.layer, UntrustedText(names));
        writeln!(rows.out, "    layer {number} also has {names}, not shown")
    })
}

fn write_edits(edits: &[RegistryEdit], out: &mut dyn Write) -> io::Result<()> {
    edits
        .iter()
        .try_for_each(|edit| writeln!(out, "      {}", UntrustedText(edit)))
}
