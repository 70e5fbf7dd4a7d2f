//! The manual: a page for the program, and one for each of its commands, from what the command line
//! says of itself.

use std::path::Path;
use std::{fs, io};

use clap::Command;
use clap_mangen::Man;
use roff::{Roff, bold, italic, roman};

/// Common end of every command.
const EXIT_CODES: [(&str, &str); 5] = [
    (
        "0",
        "It is done, and the answer, if there was a question, is yes.",
    ),
    ("1", "The answer is no."),
    ("2", "The command line or an input file is wrong."),
    ("3", "It could not be done."),
    (
        "130, 143",
        "It was interrupted by Ctrl-C or by kill, and ended by that signal.",
    ),
];

/// A variable or a file that counts, for the commands that have one of these flags; for all of them
/// where there is none.
struct ExternalInput {
    flags: &'static [&'static str],
    name: &'static str,
    what: &'static str,
}

const VARIABLES: [ExternalInput; 13] = [
    ExternalInput {
        flags: &["docker-host"],
        name: "DOCKER_HOST, DOCKER_CONTEXT, DOCKER_TLS_VERIFY, DOCKER_CERT_PATH",
        what: "The Docker daemon, as for docker itself.",
    },
    ExternalInput {
        flags: &["registry-config"],
        name: "DOCKER_CONFIG",
        what: "The folder of Docker's config.json, which has the credentials for registries.",
    },
    ExternalInput {
        flags: &["registry-config"],
        name: "REGISTRY_AUTH_FILE",
        what: "The file with credentials of Podman and skopeo, read after Docker's.",
    },
    ExternalInput {
        flags: &["kube"],
        name: "KUBECONFIG",
        what: "The kubeconfig, as for kubectl.",
    },
    ExternalInput {
        flags: &["ca-file"],
        name: "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY",
        what: "The way to the network, and the hosts to which there is a direct one.",
    },
    ExternalInput {
        flags: &["ca-file"],
        name: "SSL_CERT_FILE, SSL_CERT_DIR",
        what: "The CAs to trust in place of the machine's.",
    },
    ExternalInput {
        flags: &["engine"],
        name: "SOURCE_DATE_EPOCH",
        what: "The time that images carry, in seconds since 1970.",
    },
    ExternalInput {
        flags: &["engine"],
        name: "TMPDIR",
        what: "The folder for layers that are too large for memory while they are made.",
    },
    ExternalInput {
        flags: &[],
        name: "WINCIMG_CONFIG",
        what: "The file of defaults for flags, in place of wincimg.toml.",
    },
    ExternalInput {
        flags: &[],
        name: "XDG_CACHE_HOME",
        what: "The user's folder for caches.",
    },
    ExternalInput {
        flags: &[],
        name: "NO_COLOR",
        what: "If it is set, nothing is coloured.",
    },
    ExternalInput {
        flags: &[],
        name: "TERM",
        what: "If it is dumb, nothing is coloured either, and progress comes as lines.",
    },
    ExternalInput {
        flags: &["shell"],
        name: "WINCIMG_COMPLETE",
        what: "Set by the completion scripts: the word that they ask about.",
    },
];

const FILES: [ExternalInput; 5] = [
    ExternalInput {
        flags: &[],
        name: "wincimg.toml",
        what: "Defaults for flags, in the working directory or the nearest folder above it.",
    },
    ExternalInput {
        flags: &[],
        name: "~/.cache/wincimg",
        what: "What is learnt between runs: what is inside base images, downloads by their digest, the \
               table of updates.",
    },
    ExternalInput {
        flags: &["registry-config"],
        name: "~/.docker/config.json",
        what: "Credentials for registries, and the helpers that keep them.",
    },
    ExternalInput {
        flags: &["ca-file"],
        name: "/etc/docker/certs.d, /etc/containers/certs.d",
        what: "Certificates to trust, and to be known by, for one registry each.",
    },
    ExternalInput {
        flags: &["kube"],
        name: "~/.kube/config",
        what: "The clusters, users and contexts.",
    },
];

/// Writes all pages into a folder.
pub(crate) fn write(folder: &Path, version: &str, date: &str) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut program = complete(wincimg::command()).disable_help_subcommand(true);
    program.build();
    let edition = Edition { version, date };
    pages(&program, &[], &edition, &mut |name, text| {
        fs::write(folder.join(format!("{name}.1")), text)
    })
}

struct Edition<'a> {
    version: &'a str,
    date: &'a str,
}

fn pages(
    command: &Command,
    above: &[&Command],
    edition: &Edition<'_>,
    write: &mut dyn FnMut(&str, String) -> io::Result<()>,
) -> io::Result<()> {
    let name = page_name(command);
    write(&name, page(command, above, edition)?)?;
    let above = [above, &[command]].concat();
    for inner in shown(command) {
        pages(inner, &above, edition, write)?;
    }
    Ok(())
}

/// The command with every flag: the library leaves out the text of those that `-h` hides.
fn complete(command: Command) -> Command {
    command
        .mut_args(|argument| argument.hide_short_help(false))
        .mut_subcommands(complete)
}

fn page_name(command: &Command) -> String {
    command
        .get_display_name()
        .unwrap_or(command.get_name())
        .to_owned()
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command
        .get_subcommands()
        .filter(|inner| !inner.is_hide_set())
}

fn page(command: &Command, above: &[&Command], edition: &Edition<'_>) -> io::Result<String> {
    let name = page_name(command);
    let words = HelpSections::from_command(command);
    // One line in place of every flag, which OPTIONS has.
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim().to_owned();
    let reader = command.clone().override_usage(usage);
    let man = Man::new(reader)
        .title(name.to_uppercase())
        .date(edition.date)
        .source(format!("wincimg {}", edition.version))
        .manual("User Commands");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    let mut more = Roff::new();
    for paragraph in &words.notes {
        more.control("PP", []);
        more.text([roman(paragraph)]);
    }
    more.to_writer(&mut page)?;
    if shown(command).next().is_some() {
        commands(command).to_writer(&mut page)?;
    }
    man.render_options_section(&mut page)?;
    let mut rest = Roff::new();
    examples(&words, &mut rest);
    exit_status(&words, &mut rest);
    outside("ENVIRONMENT", &VARIABLES, command, &mut rest);
    outside("FILES", &FILES, command, &mut rest);
    see_also(command, above, &mut rest);
    rest.to_writer(&mut page)?;
    Ok(fix_markup(&String::from_utf8_lossy(&page)))
}

/// The page in a form that mandoc and groff read alike: values are a list of its own below an
/// option, and a backslash is one outside macros too.
fn fix_markup(page: &str) -> String {
    page.replace("\\\\", "\\e")
        .replace("\n.br\n\n.br\n", "\n.sp\n")
        .replace("\n.RS 14\n", "\n.RS 7\n.PD 0\n")
        .replace("\n.RE\n", "\n.PD\n.RE\n")
}

/// Sections of a command's help after its options.
#[derive(Debug, Default)]
struct HelpSections {
    examples: Vec<String>,
    exit: Vec<String>,
    notes: Vec<String>,
}

impl HelpSections {
    fn from_command(command: &Command) -> Self {
        let text = command.get_after_long_help().or(command.get_after_help());
        let text = text.map(ToString::to_string).unwrap_or_default();
        let mut after = Self::default();
        let mut are_examples = false;
        for line in text.lines() {
            match line {
                "Examples:" => are_examples = true,
                "" => are_examples = false,
                line if are_examples => {
                    after
                        .examples
                        .push(line.strip_prefix("  ").unwrap_or(line).to_owned());
                }
                // What every page has.
                line if line.starts_with("Exit codes:") => {}
                line if line.starts_with("Exit code") => after.exit.push(line.to_owned()),
                line => after.notes.push(line.to_owned()),
            }
        }
        after
    }
}

fn commands(command: &Command) -> Roff {
    let mut section = Roff::new();
    section.control("SH", ["COMMANDS"]);
    for inner in shown(command) {
        let about = inner.get_about().map(ToString::to_string);
        section.control("TP", []);
        section.text([bold(page_name(inner)), roman("(1)")]);
        section.text([roman(about.unwrap_or_default())]);
    }
    section
}

fn examples(words: &HelpSections, section: &mut Roff) {
    if words.examples.is_empty() {
        return;
    }
    section.control("SH", ["EXAMPLES"]);
    section.control("nf", []);
    for line in &words.examples {
        section.text([roman(line)]);
    }
    section.control("fi", []);
}

fn exit_status(words: &HelpSections, section: &mut Roff) {
    section.control("SH", ["EXIT STATUS"]);
    for (code, what) in EXIT_CODES {
        section.control("TP", []);
        section.text([bold(code)]);
        section.text([roman(what)]);
    }
    for paragraph in &words.exit {
        section.control("PP", []);
        section.text([roman(paragraph)]);
    }
}

fn outside(title: &str, all: &[ExternalInput], command: &Command, section: &mut Roff) {
    section.control("SH", [title]);
    let has = |flag: &&str| {
        command
            .get_arguments()
            .any(|it| it.get_long() == Some(*flag) || it.get_id() == *flag)
    };
    // The program's own page speaks for all commands.
    let counts = |it: &&ExternalInput| {
        it.flags.is_empty() || it.flags.iter().any(&has) || page_name(command) == "wincimg"
    };
    for it in all.iter().filter(counts) {
        section.control("TP", []);
        section.text([bold(it.name)]);
        section.text([roman(it.what)]);
    }
}

fn see_also(command: &Command, above: &[&Command], section: &mut Roff) {
    let mut near: Vec<&Command> = shown(command).collect();
    // The program's page lists its commands; those of a command are named on each of their pages.
    if let [_, .., parent] = above {
        near.extend(shown(parent));
    }
    let mut names: Vec<String> = above.iter().copied().chain(near).map(page_name).collect();
    names.retain(|name| *name != page_name(command));
    section.control("SH", ["SEE ALSO"]);
    let mut line = Vec::new();
    for name in names {
        if !line.is_empty() {
            line.push(roman(", "));
        }
        line.extend([bold(name), roman("(1)")]);
    }
    section.text(line);
    section.control("PP", []);
    let home = env!("CARGO_PKG_REPOSITORY");
    section.text([
        roman("The guide: "),
        italic(format!("{home}/tree/main/docs")),
    ]);
}
