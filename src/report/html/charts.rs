//! Charts of the report, as inline SVG: nodes by end of support, images by age of their base, and
//! the effect of a simulation or the plan. Text repeats all that colours show.

use std::fmt::Write as _;

use jiff::civil::Date;
use wincimg_cluster::rollout::OutcomeCounts;
use wincimg_windows::release;
use wincimg_windows::update::Updates;

use super::escaped;
use crate::report::matrix::short_release;
use crate::report::prelude::*;
use crate::report::summary::{format_tally, noun};

/// Width of a phone's page, so that text has the same size there.
const WIDTH: f64 = 360.0;

/// A chart with a caption and a text alternative.
struct Chart {
    caption: &'static str,
    note: String,
    words: Vec<String>,
    height: f64,
    shapes: String,
}

pub(super) fn charts(rollout: &Rollout) -> String {
    let pictures = [changes(rollout), support(rollout), ages(rollout)];
    let figures = pictures.into_iter().flatten().map(Chart::into_html);
    let figures: Vec<String> = figures.collect();
    figures.concat()
}

impl Chart {
    fn into_html(self) -> String {
        format!(
            "<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" \
             aria-label=\"{}\">{}</svg><p>{}</p></figure>",
            self.caption,
            self.height,
            escaped(&format!("{}: {}", self.caption, self.words.join("; "))),
            self.shapes,
            escaped(&self.note),
        )
    }

    // Writing to a string cannot fail.

    fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let text = escaped(text);
        let _ = write!(
            self.shapes,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{text}</text>"
        );
    }

    fn bar(&mut self, x: f64, y: f64, width: f64, height: f64, class: &str) {
        let _ = write!(
            self.shapes,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\" class=\"{class}\"/>"
        );
    }

    /// The part of a bar for a status, with its sign if it is wide enough.
    fn segment(&mut self, x: f64, y: f64, width: f64, starts: StartStatus) {
        const HEIGHT: f64 = 14.0;
        let class = format!("s{}", starts as usize);
        self.bar(x, y, width, HEIGHT, &class);
        if width > HEIGHT {
            let class = format!("in {class}");
            self.text(x + width / 2.0, y + 11.0, &class, sign(starts));
        }
    }
}

fn picture(caption: &'static str, note: String) -> Chart {
    Chart {
        caption,
        note,
        words: Vec::new(),
        height: 0.0,
        shapes: String::new(),
    }
}

/// A date in years, precise enough for a line.
fn years(day: Date) -> f64 {
    f64::from(day.year()) + f64::from(day.day_of_year() - 1) / 365.25
}

/// A line for each release of the nodes until its end of support, and one for today.
fn support(rollout: &Rollout) -> Option<Chart> {
    const ROW: f64 = 40.0;
    let today = rollout.today?;
    let mut nodes: BTreeMap<u32, usize> = BTreeMap::new();
    for build in rollout.hosts.iter().filter_map(|host| host.build) {
        *nodes.entry(build.version.build).or_default() += 1;
    }
    let ends = nodes.iter().filter_map(|(build, nodes)| {
        let release = release::from_build(*build)?;
        Some((release, release.extended_end?, *nodes))
    });
    let ends: Vec<_> = ends.collect();
    let until = || ends.iter().map(|(_, end, _)| years(*end));
    let first = until().fold(years(today), f64::min) - 1.0;
    let last = until().fold(years(today) + 1.0, f64::max);
    let place = |day: Date| (years(day) - first) / (last - first) * WIDTH;
    let mut drawn = picture(
        "Nodes by the end of their support",
        format!("Thick: all updates. Thin: security updates only. The line across is {today}."),
    );
    for (release, end, nodes) in &ends {
        let y = drawn.height;
        let name = short_release(release.build);
        let until = if *end < today {
            format!("ended {end}")
        } else {
            format!("until {end}")
        };
        let class = if *end < today { "ended" } else { "lasts" };
        let nodes = count(*nodes, "node");
        drawn.text(0.0, y + 13.0, "label", &format!("{nodes} · {name}"));
        drawn.text(WIDTH, y + 13.0, "at-end", &until);
        let full = release.mainstream_end.unwrap_or(*end).min(*end);
        let full = place(full).max(0.0);
        drawn.bar(0.0, y + 20.0, full, 10.0, class);
        drawn.bar(full, y + 23.0, place(*end) - full, 4.0, class);
        drawn
            .words
            .push(format!("{nodes} of {name}, support {until}"));
        let x = place(today);
        let _ = write!(
            drawn.shapes,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{}\" y2=\"{}\" class=\"today\"/>",
            y + 18.0,
            y + 34.0
        );
        drawn.height += ROW;
    }
    (!ends.is_empty()).then_some(drawn)
}

/// Number of images by the age of the oldest Windows in each.
fn ages(rollout: &Rollout) -> Option<Chart> {
    const BOUNDS: [(i64, &str); 5] = [
        (31, "up to a month"),
        (92, "up to 3 months"),
        (183, "up to 6 months"),
        (366, "up to a year"),
        (i64::MAX, "over a year"),
    ];
    let today = rollout.today?;
    let mut counts = [0_usize; BOUNDS.len() + 1];
    let is_of_windows = |image: &&Image| {
        let variants = image.variants();
        variants.is_empty() || variants.iter().any(|variant| variant.os == "windows")
    };
    let images: Vec<&Image> = rollout.images.iter().filter(is_of_windows).collect();
    for image in &images {
        let place = base_of(image).map_or(BOUNDS.len(), |date| {
            let age = (today - date).get_days();
            let fits = |(most, _): &(i64, &str)| i64::from(age) <= *most;
            BOUNDS.iter().position(fits).unwrap_or(BOUNDS.len() - 1)
        });
        counts[place] += 1;
    }
    let names = BOUNDS.iter().map(|(_, name)| *name).chain(["not known"]);
    let rows = names.zip(counts).collect();
    if images.is_empty() {
        return None;
    }
    Some(bars(
        "Images by the age of their base",
        "The age of the oldest Windows that an image is built on.".to_owned(),
        rows,
    ))
}

/// Release date of the oldest base of an image.
fn base_of(image: &Image) -> Option<Date> {
    let updates = Updates::global();
    let dates = image
        .versions()
        .filter_map(|version| updates.contained_in(version));
    dates.map(|update| update.date).min()
}

fn bars(caption: &'static str, note: String, rows: Vec<(&str, usize)>) -> Chart {
    const ROW: f64 = 24.0;
    const LEFT: f64 = 112.0;
    let counts = rows.iter().map(|(_, count)| *count);
    let most = counts.max().unwrap_or(1).max(1);
    let mut drawn = picture(caption, note);
    for (name, number) in rows {
        let y = drawn.height;
        drawn.text(0.0, y + 15.0, "label", name);
        let length = share(number, most) * (WIDTH - LEFT - 40.0);
        if number > 0 {
            drawn.bar(LEFT, y + 4.0, length, 14.0, "lasts");
        }
        drawn.text(LEFT + length + 6.0, y + 15.0, "label", &number.to_string());
        drawn.words.push(format!("{name}: {number}"));
        drawn.height += ROW;
    }
    drawn
}

/// Ratio of two numbers, which floats represent exactly.
fn share(part: usize, whole: usize) -> f64 {
    let exact = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    exact(part) / exact(whole.max(1))
}

/// Status of the workloads today, with the simulation, and after the plan.
fn changes(rollout: &Rollout) -> Option<Chart> {
    const ROW: f64 = 46.0;
    let is_simulated = rollout.as_it_is.is_some();
    let now = if is_simulated {
        "as simulated"
    } else {
        "as it is"
    };
    let plan = rollout.plan.as_ref();
    let plan = plan.filter(|plan| !plan.actions.is_empty());
    let stages: Vec<(&str, OutcomeCounts)> = [
        rollout.as_it_is.map(|tally| ("as it is", tally)),
        Some((now, rollout.count_outcomes())),
        plan.map(|plan| ("after the plan", plan.tally)),
    ]
    .into_iter()
    .flatten()
    .collect();
    if stages.len() < 2 {
        return None;
    }
    let noun = noun(rollout);
    let mut drawn = picture(
        "What changes",
        format!(
            "Each {noun}: ✕ nowhere, ∅ on no node, ◑ only on some nodes, ? not known, ! with a warning, ✓ safe."
        ),
    );
    for (name, tally) in stages {
        let y = drawn.height;
        let total = StartStatus::ALL
            .iter()
            .map(|starts| tally.get(*starts))
            .sum();
        let there = StartStatus::ALL
            .iter()
            .filter(|starts| tally.get(**starts) > 0);
        let words: Vec<String> = there
            .clone()
            .map(|starts| format!("{} {}", sign(*starts), tally.get(*starts)))
            .collect();
        drawn.text(0.0, y + 13.0, "label", name);
        drawn.text(WIDTH, y + 13.0, "at-end", &words.join("  "));
        let mut x = 0.0;
        for starts in there {
            let length = share(tally.get(*starts), total) * WIDTH;
            drawn.segment(x, y + 19.0, length, *starts);
            x += length;
        }
        let tally = format_tally(&tally, noun);
        drawn.words.push(format!("{name}: {tally}"));
        drawn.height += ROW;
    }
    Some(drawn)
}

fn sign(starts: StartStatus) -> &'static str {
    match starts {
        StartStatus::Nowhere => "✕",
        StartStatus::Unplaced => "∅",
        StartStatus::Somewhere => "◑",
        StartStatus::Unknown => "?",
        StartStatus::Warned => "!",
        StartStatus::Everywhere => "✓",
    }
}
