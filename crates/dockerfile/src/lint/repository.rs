//! Images and tags that do not exist, and those of another platform.

use std::collections::BTreeMap;

use wincimg_common::diagnose::closest_match;
use wincimg_windows::compat::accepted_builds;
use wincimg_windows::release;

use super::prelude::*;
use super::reference::{SERVER_2019, SERVER_2022, WINDOWS_SERVER};
use super::stage_names;

/// Repositories of Microsoft under `windows/`.
const WINDOWS_REPOSITORIES: [&str; 7] = [
    "nanoserver", "servercore", "server", "servercore/iis", "servercore/insider",
    "nanoserver/insider", "server/insider",
];

/// Repositories under `dotnet/framework/`.
const FRAMEWORK_REPOSITORIES: [&str; 5] = ["aspnet", "runtime", "sdk", "wcf", "samples"];

/// Repositories of .NET.
const DOTNET_REPOSITORIES: [&str; 3] = [
    "mcr.microsoft.com/dotnet/aspnet",
    "mcr.microsoft.com/dotnet/runtime",
    "mcr.microsoft.com/dotnet/sdk",
];

/// Mistaken repositories of Docker Hub, and the intended ones of Microsoft.
const CORRECTIONS: [(&str, &str); 9] = [
    ("windowsservercore", "windows/servercore"),
    ("servercore", "windows/servercore"),
    ("nanoserver", "windows/nanoserver"),
    ("windows/servercore", "windows/servercore"),
    ("windows/nanoserver", "windows/nanoserver"),
    ("windows/server", "windows/server"),
    ("windows", "windows/server"),
    ("dotnet/framework/aspnet", "dotnet/framework/aspnet"),
    ("windows/servercore/iis", "windows/servercore/iis"),
];

/// A release of Windows with images in each repository.
const LTSC: &str = "ltsc2022";

/// Reports images that do not exist.
pub(super) fn check_images(linted: &LintFile<'_>) -> Vec<Finding> {
    let indices = 0..linted.stages.len();
    let found = indices.filter_map(|index| {
        stage_names::check_base(linted, index)
            .or_else(|| check_image(linted, &linted.stages[index]))
    });
    found.collect()
}

fn check_image(linted: &LintFile<'_>, stage: &Stage<'_>) -> Option<Finding> {
    let reference = stage.reference()?;
    let from = stage.from;
    let is_known = linted.options.bases.contains_key(&stage.image);
    if is_known || reference.digest.is_some() {
        return None;
    }
    if let Some((mut meant, mut message)) = check_repository(reference) {
        let has_no_latest = meant.starts_with("mcr.microsoft.com/windows/");
        if reference.tag.is_none() && has_no_latest {
            message = format!("{message}, which has no latest tag: add one, such as {LTSC}");
            meant = format!("{meant}:{LTSC}");
        }
        let mut words = from.text().split_whitespace();
        let image = words.next().unwrap_or_default();
        let path = image.rfind('/').map_or(0, |slash| slash + 1);
        let end = image[path..].find([':', '@']);
        let end = end.map_or(image.len(), |at| path + at);
        let start = from.start();
        let edit = Edit::new(start..start + end, meant);
        let edits: &[Edit] = if image.contains('$') { &[] } else { &[edit] };
        return Some(Finding::edited(linted.file, from, message, edits));
    }
    // An argument may mean an image of the machine.
    let is_literal = !from.text().contains('$');
    let of_node = windows_of_node(reference).filter(|_| is_literal);
    let of_node = of_node.map(|message| (Severity::Warning, message));
    let of_tag = || Some((Severity::error_if(is_literal), check_tag(reference)?));
    let (severity, message) = of_node.or_else(of_tag)?;
    let found = Finding::new(from.lines().0, message);
    Some(found.of("unknown-tag").severity(severity))
}

/// Message about the official image of Node.js, which is only for Linux, with a tag of Windows.
fn windows_of_node(reference: &Reference) -> Option<String> {
    let repository = reference.repository.as_str();
    let tag = reference.tag.as_deref()?;
    (reference.name_on_hub() == "node" && reference.names_windows()).then(|| {
        format!(
            "Docker Hub has no {repository}:{tag}, as this image is only for Linux: install Node.js on a \
             base of Windows"
        )
    })
}

/// The repository that was meant, and a message.
fn check_repository(reference: &Reference) -> Option<(String, String)> {
    let repository = reference.repository.as_str();
    let hub = reference.name_on_hub();
    if let Some((_, meant)) = CORRECTIONS.iter().find(|(name, _)| *name == hub) {
        let meant = format!("mcr.microsoft.com/{meant}");
        let message = format!("Docker Hub has no image {hub}; use {meant}");
        return Some((meant, message));
    }
    let path = repository.strip_prefix("mcr.microsoft.com/")?;
    let meant = if let Some(name) = path.strip_prefix("windows/") {
        format!("windows/{}", meant_name(name, &WINDOWS_REPOSITORIES)?)
    } else if let Some(name) = path.strip_prefix("dotnet/framework/") {
        format!(
            "dotnet/framework/{}",
            meant_name(name, &FRAMEWORK_REPOSITORIES)?
        )
    } else if let Some(name) = path.strip_prefix("window/")
        && WINDOWS_REPOSITORIES.contains(&name)
    {
        format!("windows/{name}")
    } else if path == "windows" {
        // Unlike on Docker Hub, it exists.
        return None;
    } else {
        let (_, meant) = CORRECTIONS.iter().find(|(name, _)| *name == path)?;
        (*meant).to_owned()
    };
    let meant = format!("mcr.microsoft.com/{meant}");
    let message = format!("{repository} does not exist; use {meant}");
    Some((meant, message))
}

/// The name of a folder's repository that was meant by another one; others may be added.
fn meant_name(name: &str, known: &[&str]) -> Option<String> {
    if known.contains(&name) || name.contains("insider") {
        return None;
    }
    match name {
        "windowsservercore" | "core" | "servercore-iis" => Some("servercore".to_owned()),
        "iis" => Some("servercore/iis".to_owned()),
        _ => closest_match(name, known.iter().copied()),
    }
}

/// Message about a tag that does not exist.
fn check_tag(reference: &Reference) -> Option<String> {
    let tag = reference.tag.as_deref().filter(|tag| !tag.is_empty())?;
    let repository = reference.repository.as_str();
    // Of any image, as there is no such release.
    let mut words = tag.split(['-', '_']);
    let release = words.find(|word| {
        let lower = word.to_ascii_lowercase();
        let year = lower.strip_prefix("ltsc");
        year.is_some_and(|year| year.len() == 4 && !YEARS.contains(&year))
    });
    let is_of_windows = reference.platform() == Platform::Windows;
    if let Some(word) = release.filter(|_| is_of_windows) {
        return Some(format!(
            "there is no Windows {word}: the releases are ltsc2016, ltsc2019, ltsc2022 and ltsc2025"
        ));
    }
    if !repository.starts_with("mcr.microsoft.com/") {
        return None;
    }
    let major = tag.split(['.', '-']).next();
    let major = major.and_then(|it| it.parse::<u32>().ok());
    if repository.starts_with("mcr.microsoft.com/dotnet/core/") && major.is_some_and(|it| it > 3) {
        let path = repository.replace("dotnet/core/", "dotnet/");
        return Some(format!("{repository} ends with .NET Core 3.1: use {path}"));
    }
    if let Some(path) = major.and_then(|major| other_dotnet(repository, major)) {
        return Some(format!("{repository} has no tag {tag}: use {path}"));
    }
    let why = if reference.is_windows_base() {
        check_base_tag(reference, tag)?
    } else {
        check_form(repository, tag, reference.build())?
    };
    Some(format!("{repository} has no tag {tag}{why}"))
}

/// The repository of a major version that this one does not have: .NET Framework ends with 4, .NET
/// begins with 5.
fn other_dotnet(repository: &str, major: u32) -> Option<String> {
    let of_framework = repository.strip_prefix("mcr.microsoft.com/dotnet/framework/");
    match (of_framework, major) {
        // Others are dates.
        (Some(name @ ("aspnet" | "runtime" | "sdk")), 5..=99) => {
            Some(format!("mcr.microsoft.com/dotnet/{name}"))
        }
        (None, 4) if DOTNET_REPOSITORIES.contains(&repository) => {
            Some(repository.replace("/dotnet/", "/dotnet/framework/"))
        }
        _ => None,
    }
}

/// Years of releases in tags.
const YEARS: [&str; 4] = ["2016", "2019", "2022", "2025"];

const NAMES: &str = ": the names of Windows are windowsservercore-ltsc2022 and the like";

/// Reason why an image on a base of Windows has no tag: those have another form.
fn check_form(repository: &str, tag: &str, build: Option<u32>) -> Option<String> {
    let is_dotnet = repository.starts_with("mcr.microsoft.com/dotnet/");
    let is_framework = repository.contains("dotnet/framework/");
    let mut words = tag.split('-');
    let first = words.next().unwrap_or_default();
    let has_core = tag.contains("windowsservercore");
    let has_kind = has_core || tag.contains("nanoserver");
    // Images of .NET name Nano Server by its build.
    let is_short_nano = tag.contains_any(&["nanoserver-ltsc2019", "nanoserver-ltsc2016"]);
    // Since .NET 5 each tag has the release of Windows.
    let is_bare = tag.ends_with("nanoserver") || tag.ends_with("windowsservercore");
    let mut pairs = tag.split('-').zip(words);
    let is_short = is_dotnet
        && pairs.any(|(base, year)| {
            matches!(base, "windowsservercore" | "nanoserver") && YEARS.contains(&year)
        });
    let is_iis = repository.ends_with("windows/servercore/iis");
    let is_published = |build: u32| match first {
        "4.6.2" => build == 14393,
        "4.7" | "4.7.1" => build < 17763,
        "4.7.2" => build <= 17763,
        "4.8" => build <= SERVER_2022,
        "4.8.1" => build >= SERVER_2022,
        _ => true,
    };
    let why = match () {
        () if is_dotnet && !repository.contains("framework") && is_short_nano => {
            ": Nano Server of Server 2019 is nanoserver-1809"
        }
        () if is_bare && DOTNET_REPOSITORIES.contains(&repository) => {
            return Some(format!(
                ": add the release of Windows, as in {tag}-ltsc2022"
            ));
        }
        () if tag.contains("-ltsc") && !has_kind && DOTNET_REPOSITORIES.contains(&repository) => {
            ": the names of Windows are nanoserver-ltsc2022, windowsservercore-ltsc2022 and the like"
        }
        () if DOTNET_REPOSITORIES.contains(&repository)
            && has_core
            && build.is_some_and(|it| it < SERVER_2019) =>
        {
            ": .NET has no images for Windows before Server 2019"
        }
        () if is_short || is_iis && release::from_tag_word(first).is_some() => NAMES,
        () if is_framework && build.is_some_and(|build| !is_published(build)) => {
            ": Server 2022 has .NET Framework 4.8 and 4.8.1, later releases 4.8.1, and earlier ones at \
             most 4.8"
        }
        () if is_framework && tag.contains("-ltsc") && !has_core => NAMES,
        () if is_framework && tag.contains("nanoserver") => {
            ": .NET Framework does not run on Nano Server"
        }
        () => return None,
    };
    Some(why.to_owned())
}

/// Reason why Windows' own image has no tag.
fn check_base_tag(reference: &Reference, tag: &str) -> Option<String> {
    let first = tag.split('-').next().unwrap_or_default();
    let repository = &reference.repository;
    if repository.ends_with("windows/nanoserver") && first == "ltsc2016" {
        return Some(": Nano Server 2016 was sac2016".to_owned());
    }
    let successor = reference
        .build()
        .and_then(|build| reference.repository_for(build));
    if let Some(successor) = successor.filter(|it| it.ends_with("/server") && it != repository) {
        return Some(format!(": since Server 2022 it is {successor}"));
    }
    if repository == WINDOWS_SERVER && successor.is_some_and(|it| it != repository) {
        return Some(": before Server 2022 it is mcr.microsoft.com/windows".to_owned());
    }
    let is_version = first.starts_with("10.0.")
        && first
            .parse::<wincimg_windows::version::WindowsVersion>()
            .is_ok();
    let is_release = release::from_tag_word(first).is_some();
    // 20H2 was published as 2009 first.
    if is_version || is_release || matches!(first, "latest" | "2009") || first.starts_with("sac") {
        return None;
    }
    // Others have no form that could be judged.
    let is_judged = first.chars().all(|c| c.is_ascii_digit() || c == '.')
        || first.to_ascii_lowercase().starts_with("ltsc")
        || matches!(
            first,
            "windowsservercore" | "nanoserver" | "servercore" | "windows" | "stable" | "lts"
        );
    // `ltcs2022`
    let year = first.trim_start_matches(['l', 't', 's', 'c']);
    let is_judged = is_judged || year.len() < first.len() && YEARS.contains(&year);
    let meant = meant_release(tag);
    is_judged.then(|| meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?")))
}

/// The tag of the release whose build or year a tag has: an image of another one may not run.
fn meant_release(tag: &str) -> Option<&'static str> {
    let mut numbers = tag.split(|c: char| !c.is_ascii_digit());
    numbers.find_map(|number| {
        let of_build = number.parse().ok().and_then(release::from_build);
        let year = number.strip_prefix("20").unwrap_or(number);
        let of_year = || release::from_tag_word(&format!("ltsc20{year}"));
        of_build.or_else(of_year)?.base_tag
    })
}

/// Reports a stage for Linux that takes files of a stage that runs commands on Windows, or the
/// other way round: no builder runs both.
fn check_builders(linted: &LintFile<'_>) -> Option<Finding> {
    let system = |stage| {
        let image = linted.base_image(stage);
        image.map_or(Platform::Unknown, Reference::platform)
    };
    let stages = linted.stages.iter();
    let mut copies = stages.flat_map(|stage| stage.all("COPY").map(move |step| (stage, step)));
    copies.find_map(|(stage, step)| {
        let source = linted.source(stage, step.instruction.flag("from")?)?;
        let (windows, linux) = match (system(source), system(stage)) {
            (Platform::Windows, Platform::Linux) => (source, stage),
            (Platform::Linux, Platform::Windows) => (stage, source),
            _ => return None,
        };
        let message = format!(
            "one of the stages on lines {} and {} runs commands on Linux and the other on Windows, and \
             no builder runs both: build them with a Dockerfile each",
            source.from.lines().0 + 1,
            stage.from.lines().0 + 1
        );
        let run_both = windows.has("RUN") && linux.has("RUN");
        run_both.then(|| step.finding(message).warning())
    })
}

/// Reports a stage with an image of Linux above one that runs commands on Windows: Docker on Windows
/// builds it too.
fn check_linux_stage(linted: &LintFile<'_>) -> Option<Finding> {
    let runs_on = |stage: &Stage<'_>, is_meant: fn(&Reference) -> bool| {
        stage.reference().is_some_and(is_meant)
            && stage.from.flag("platform").is_none()
            && stage.has("RUN")
    };
    let mut stages = linted.stages.iter();
    let linux = stages.find(|it| runs_on(it, Reference::is_only_for_linux))?;
    let is_windows = |it: &Reference| it.platform() == Platform::Windows;
    let windows = stages.find(|it| runs_on(it, is_windows))?;
    let message = format!(
        "{} has no image for Windows, which the RUN of the stage on line {} requires: use a Dockerfile \
         each",
        linux.image,
        windows.from.lines().0 + 1
    );
    Some(Finding::new(linux.from.lines().0, message).warning())
}

/// Reports stages of one build that run commands on releases of Windows that no host runs both.
fn check_releases(linted: &LintFile<'_>) -> Option<Finding> {
    // The releases that the build of each stage runs, with the line of a stage.
    let mut known: Vec<BTreeMap<u32, usize>> = Vec::with_capacity(linted.stages.len());
    for stage in &linted.stages {
        let line = stage.from.lines().0;
        let mut own = match stage.base {
            StageBaseRef::Stage(base) => known[base].clone(),
            _ => BTreeMap::new(),
        };
        let copies = stage.all("COPY");
        let names = copies.filter_map(|step| step.instruction.flag("from"));
        for source in names.filter_map(|name| linted.source(stage, name)) {
            let at = source.from.lines().0;
            let index = linted.stages.partition_point(|it| it.from.lines().0 < at);
            own.extend(&known[index]);
        }
        if let Some(build) = run_build(linted, stage) {
            own.insert(build, line);
        }
        if let (Some((oldest, first)), Some((newest, second))) =
            (own.first_key_value(), own.last_key_value())
            && !accepted_builds(*newest).contains(oldest)
        {
            let message = format!(
                "the stages on lines {} and {} run commands on {} and {}, and without Hyper-V isolation \
                 no host runs both: use one release",
                first.min(second) + 1,
                first.max(second) + 1,
                release::name_of(*oldest),
                release::name_of(*newest)
            );
            return Some(Finding::new(line, message).warning());
        }
        known.push(own);
    }
    None
}

/// The build of Windows that runs the commands of a stage, if its base certainly has no other.
fn run_build(linted: &LintFile<'_>, stage: &Stage<'_>) -> Option<u32> {
    let base = linted.chain(stage).last()?;
    let reference = base.reference()?;
    let is_certain = (reference.is_windows_base() || reference.names_windows())
        && reference.digest.is_none()
        && !base.from.text().contains('$');
    reference.build().filter(|_| is_certain && stage.has("RUN"))
}

/// Reports an image that is only for Linux below a shell of Windows.
fn check_sql_server(stage: &Stage<'_>) -> Option<Finding> {
    let is_of_windows = |step: &LintStep<'_>| {
        step.is("SHELL")
            && matches!(step.shell, BaseShell::Cmd | BaseShell::PowerShell)
            && !step.is_core
    };
    let sql_server = "mcr.microsoft.com/mssql/server";
    let is_sql_server = stage
        .reference()
        .is_some_and(|it| it.repository == sql_server);
    let message = "mcr.microsoft.com/mssql/server has images for Linux only: install SQL Server \
        on mcr.microsoft.com/windows/servercore";
    let is_mistaken = is_sql_server && stage.steps.iter().any(is_of_windows);
    is_mistaken.then(|| Finding::new(stage.from.lines().0, message))
}

/// Reports a platform that the base is not for.
pub(super) fn check_platform(linted: &LintFile<'_>) -> Vec<Finding> {
    let of_builders = check_builders(linted)
        .or_else(|| check_linux_stage(linted))
        .or_else(|| check_releases(linted));
    let of_sql_server = linted.stages.iter().filter_map(check_sql_server);
    let of_flag = linted.stages.iter().filter_map(check_flag);
    let found = of_builders.into_iter().chain(of_sql_server);
    found.chain(of_flag).collect()
}

/// Reports a `--platform` that does not exist, or that the base is not for.
fn check_flag(stage: &Stage<'_>) -> Option<Finding> {
    let platform = stage.from.flag("platform")?;
    let system = platform.split('/').next().unwrap_or_default();
    let system = system.to_ascii_lowercase();
    let line = stage.from.lines().0;
    if system.contains('$') || system.contains('{') {
        return None;
    }
    let known = [
        "windows", "linux", "darwin", "freebsd", "amd64", "arm64", "arm", "local",
    ];
    if !known.contains(&system.as_str()) {
        let message = format!("unknown platform \"{platform}\": expected windows/amd64");
        return Some(Finding::new(line, message));
    }
    let reference = stage.reference()?;
    let repository = reference.repository.as_str();
    let is_of_windows = reference.is_windows_base()
        || repository.starts_with("mcr.microsoft.com/dotnet/framework/")
        || reference.names_windows();
    let is_of_linux = reference.platform() == Platform::Linux;
    let is_other = system == "linux" && is_of_windows || system == "windows" && is_of_linux;
    let message = format!("{} is not for {platform}", stage.image);
    is_other.then(|| Finding::new(line, message))
}

/// Reports files of Windows that go from one Windows to another.
pub(super) fn check_mixed(linted: &LintFile<'_>) -> Vec<Finding> {
    let build = |stage| linted.base_image(stage)?.build();
    let stages = linted.stages.iter();
    let copies = stages.flat_map(|stage| stage.all("COPY").map(move |step| (stage, step)));
    let found = copies.filter_map(|(stage, step)| {
        let from = step.instruction.flag("from")?;
        let text = step.lower_text().replace('\\', "/");
        if !text.contains_any(&["windows/system32", "windows/syswow64"]) {
            return None;
        }
        let other = match linted.source(stage, from) {
            Some(source) => build(source)?,
            None => Reference::parse(from).build()?,
        };
        let own = build(stage).filter(|own| *own != other)?;
        let message = format!(
            "files of Windows {other} may not work in Windows {own}: use the same release for both"
        );
        let target = text.split_whitespace().next_back().unwrap_or_default();
        // A program on its own may be there because the other release lacks it.
        let is_part = target.contains("windows/") || text.contains(".dll");
        let severity = if is_part {
            Severity::Warning
        } else {
            Severity::Note
        };
        Some(step.finding(message).severity(severity))
    });
    found.collect()
}
