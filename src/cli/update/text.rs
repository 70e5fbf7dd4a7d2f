//! Text report of the updates of an image.

use wincimg_engine::update::{
    BaseDetection, ComparisonScope, ImageLayer, PlannedUpdate, UpdateConflict, UpdatePlan,
    UpdateVerdict,
};

use crate::cli::prelude::*;

/// Maximum number of obstacles shown; the JSON has all of them.
const MOST: usize = 8;

/// Writes the base of each host's image, and the verdict.
pub(super) fn write_plan(
    image: &Reference,
    updates: &UpdatePlan,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{image}")?;
    if updates.planned.is_empty() {
        return writeln!(
            out,
            "  up to date: it contains no Windows and runs on any host"
        );
    }
    for update in &updates.planned {
        write_update(update, out)?;
    }
    Ok(())
}

fn write_update(update: &PlannedUpdate, out: &mut dyn Write) -> io::Result<()> {
    let planned = &update.planned;
    let mut rows = Rows { out, width: 9 };
    rows.each("host", &planned.host)?;
    let by = match update.on.found_by {
        BaseDetection::Asked => "from --base",
        BaseDetection::Named => "named by the image",
        BaseDetection::Layers => "detected by layers",
    };
    rows.row("is on", format_args!("{} ({by})", update.on.name()))?;
    if update.verdict != UpdateVerdict::UpToDate {
        let (name, matched) = (planned.base.display_name(), planned.base.match_name());
        rows.row("fits", format_args!("{name} ({matched})"))?;
    }
    let out = rows.out;
    match &update.verdict {
        UpdateVerdict::UpToDate => writeln!(out, "  up to date"),
        UpdateVerdict::Moves if update.own.is_empty() => {
            writeln!(out, "  can be rebased: it has no layers of its own")
        }
        UpdateVerdict::Moves => {
            let layers = update.own.len();
            let bytes: u64 = update.own.iter().map(|layer| layer.size).sum();
            let is_compared = update
                .own
                .iter()
                .any(|it| it.compared == ComparisonScope::Bases);
            let how = match (is_compared, layers) {
                (true, 1) => "means the same on both bases",
                (true, _) => "mean the same on both bases",
                (false, 1) => "only uses folders of its own",
                (false, _) => "only use folders of their own",
            };
            let layers = count(layers, "layer");
            let size = BinaryBytes(bytes);
            writeln!(out, "  can be rebased: its {layers} ({size}) {how}")?;
            write_added_hives(&update.own, out)
        }
        UpdateVerdict::Refused(obstacles) => {
            writeln!(out, "  cannot be rebased")?;
            write_obstacles(obstacles, out)
        }
        UpdateVerdict::Unknown(obstacles) => {
            writeln!(out, "  outdated; whether it can be rebased is not known")?;
            write_obstacles(obstacles, out)
        }
    }
}

fn write_added_hives(own: &[ImageLayer], out: &mut dyn Write) -> io::Result<()> {
    let incomplete = own.iter().filter(|layer| !layer.added_hives.is_empty());
    let numbers = joined(incomplete.map(|layer| layer.layer), ", ");
    if numbers.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "  adds     hives without changes to layer {numbers}: all layers need all hives, or none"
    )
}

fn write_obstacles(obstacles: &[UpdateConflict], out: &mut dyn Write) -> io::Result<()> {
    let same_layer = |a: &UpdateConflict, b: &UpdateConflict| a.layer == b.layer;
    for of_layer in obstacles.chunk_by(same_layer) {
        let Some(first) = of_layer.first() else {
            continue;
        };
        writeln!(out, "    layer {} {}", first.layer, first.digest)?;
        if let Some(instruction) = &first.instruction {
            writeln!(
                out,
                "      made by {}",
                UntrustedText(in_one_line(instruction))
            )?;
        }
        for obstacle in of_layer.iter().take(MOST) {
            let (place, conflict) = (
                UntrustedText(&obstacle.place),
                UntrustedText(&obstacle.conflict),
            );
            writeln!(out, "      {place}: {conflict}")?;
        }
        match of_layer.len().saturating_sub(MOST) {
            0 => {}
            more => writeln!(out, "      and {more} more")?,
        }
    }
    Ok(())
}

/// Hint for images that cannot be rebased, or perhaps.
pub(super) fn write_hint(updates: &UpdatePlan, out: &mut dyn Write) -> io::Result<()> {
    let is_unknown = |it: &&PlannedUpdate| matches!(it.verdict, UpdateVerdict::Unknown(_));
    let unknown = updates.planned.iter().filter(is_unknown);
    let obstacles = unknown.flat_map(|update| update.verdict.obstacles());
    let bases: BTreeSet<&String> = obstacles.flat_map(|it| &it.unknown_bases).collect();
    if !bases.is_empty() {
        writeln!(
            out,
            "  --check reads no bases: run the update without --check, or index them once:"
        )?;
    }
    for base in bases {
        let command = command_line(&["wincimg", "image", "base", "index", base.as_str()]);
        writeln!(out, "    {}", UntrustedText(command))?;
    }
    if updates.are_refused() {
        writeln!(
            out,
            "  build it again from its sources: wincimg build FOLDER --host-build …"
        )?;
    }
    Ok(())
}

/// An instruction, shortened to one line.
fn in_one_line(text: &str) -> String {
    const LONGEST: usize = 160;
    let mut line = joined(text.split_whitespace(), " ");
    if let Some((end, _)) = line.char_indices().nth(LONGEST) {
        line.truncate(end);
        line.push('…');
    }
    line
}
