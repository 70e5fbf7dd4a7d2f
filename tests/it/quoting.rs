//! The quoting module checked with real parsers of command lines: those of wine, which start a
//! program that prints its arguments.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use wincimg_testkit::wine::{Wine, succeed, windows_path};
use wincimg_windows::quoting::argv::ArgvParser;
use wincimg_windows::quoting::{Escape, argv, cmd, powershell};
use wincimg_windows::testing::shell_lines::{CMD_PREFIX, for_cmd, for_powershell};

/// Output of one started program.
#[derive(Debug, Default, PartialEq)]
struct ParsedArguments {
    runtime: Option<Vec<String>>,
    shell32: Option<Vec<String>>,
}

/// The program that prints its arguments, and wine to run it.
struct ArgumentPrinter {
    /// Its path in Windows' form, with and without a space.
    spaced: String,
    plain: String,
    wine: Wine,
}

impl ArgumentPrinter {
    /// Shared by all tests that run at the same time.
    fn find() -> Arc<Self> {
        static SHARED: Mutex<Weak<ArgumentPrinter>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(printer) = shared.upgrade() {
            return printer;
        }
        let wine = Wine::start();
        let source = "tests/programs/argv.c";
        std::fs::create_dir(wine.drive().join("a space")).unwrap();
        for program in ["argv.exe", "a space/argv.exe"] {
            wine.compile(source, program, &["-municode", "-lshell32"])
                .unwrap();
        }
        let printer = Arc::new(Self {
            spaced: windows_path(&wine.drive().join("a space/argv.exe")),
            plain: windows_path(&wine.drive().join("argv.exe")),
            wine,
        });
        *shared = Arc::downgrade(&printer);
        printer
    }

    /// Runs every command line, in sequence, in one wine process.
    fn run(&self, lines: &[String]) -> Vec<ParsedArguments> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), lines.join("\0")).unwrap();
        let mut program = self.wine.command("argv.exe");
        program.arg("--run").arg(windows_path(file.path()));
        let seen = read_output(&succeed(&mut program).unwrap());
        assert_eq!(seen.len(), lines.len());
        seen
    }
}

fn read_output(text: &str) -> Vec<ParsedArguments> {
    let mut seen = Vec::new();
    for line in text.lines() {
        let mut fields = line.split('/');
        match fields.next() {
            Some("line") => seen.push(ParsedArguments::default()),
            Some("runtime") => seen.last_mut().unwrap().runtime = Some(arguments(fields)),
            Some("shell32") => seen.last_mut().unwrap().shell32 = Some(arguments(fields)),
            // cmd's message for a line that it cannot run; the missing output shows it.
            _ => {}
        }
    }
    seen
}

fn arguments<'a>(fields: impl Iterator<Item = &'a str>) -> Vec<String> {
    fields
        .map(|digits| {
            let bytes = hex::decode(digits).unwrap();
            let units: Vec<u16> = bytes
                .chunks_exact(2)
                .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
                .collect();
            String::from_utf16(&units).unwrap()
        })
        .collect()
}

/// Deterministic values of a strategy.
pub(crate) fn sample<T>(strategy: impl Strategy<Value = T>, count: usize) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    (0..count)
        .map(|_| strategy.new_tree(&mut runner).unwrap().current())
        .collect()
}

/// Arguments composed of difficult pieces.
pub(crate) fn argument(pieces: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(pieces), 0..7).prop_map(|pieces| pieces.concat())
}

pub(crate) const PIECES: &[&str] = &[
    "\"", "\\", "\\\"", " ", "\t", "^", "&", "|", "<", ">", "!x!", "'", "’", "$x", "`", "--%", "@",
    "(", ")", ";", ",", "=", "[", "ü", "漢", "😀", "a", "b ", "C:\\dir\\", "/f", "#", "~",
];

/// Pieces that a shell's line cannot contain, or that wine's cmd parses in another order (see
/// `cmd`).
const PIECES_OF_DIRECT_LINES: &[&str] = &["\"", "\\", " ", "%PATH%", "%", "\n", "a", "\"\"", "^"];

#[test]
fn any_line_is_taken_apart_as_wine_does_it() {
    let wine = ArgumentPrinter::find();
    let tails = sample(argument(&["\"", "\"", "\\", "\\", " ", "\t", "a"]), 120);
    let lines: Vec<String> = tails
        .iter()
        .map(|tail| format!("\"{}\" {tail}", wine.spaced))
        .collect();
    for (line, seen) in lines.iter().zip(wine.run(&lines)) {
        let split = |reader| Some(argv::split(line, reader));
        assert_eq!(seen.runtime, split(ArgvParser::CRuntime), "{line}");
        assert_eq!(
            seen.shell32,
            split(ArgvParser::CommandLineToArgvW),
            "{line}"
        );
    }
}

#[test]
fn a_joined_line_arrives_as_the_list_that_went_in() {
    let wine = ArgumentPrinter::find();
    let any = prop_oneof![argument(PIECES), argument(PIECES_OF_DIRECT_LINES)];
    let lists: Vec<Vec<String>> = sample(prop::collection::vec(any, 0..5), 60)
        .into_iter()
        .map(|list| std::iter::once(wine.spaced.clone()).chain(list).collect())
        .collect();
    let lines: Vec<String> = lists.iter().map(|list| argv::join(list)).collect();
    assert_arrived(&wine, &lists, &lines);
}

#[test]
fn a_text_for_cmd_arrives_through_cmd() {
    let wine = ArgumentPrinter::find();
    let lists: Vec<Vec<String>> = sample(prop::collection::vec(argument(PIECES), 0..5), 80)
        .into_iter()
        .enumerate()
        .map(|(index, list)| {
            let program = [&wine.spaced, &wine.plain][index % 2];
            std::iter::once(program.clone()).chain(list).collect()
        })
        .collect();
    let lines: Vec<String> = lists
        .iter()
        .map(|list| for_cmd(list, Escape::Backslash))
        .map(|text| format!("{CMD_PREFIX}{text}"))
        .collect();
    assert_arrived(&wine, &lists, &lines);
}

#[test]
fn what_powershell_would_start_arrives() {
    let wine = ArgumentPrinter::find();
    let lists: Vec<Vec<String>> = sample(prop::collection::vec(argument(PIECES), 0..5), 40)
        .into_iter()
        .map(|list| std::iter::once(wine.spaced.clone()).chain(list).collect())
        .collect();
    let lines: Vec<String> = lists
        .iter()
        .map(|list| {
            let text = for_powershell(list);
            let words = powershell::simple_command(&powershell::script(&text)).unwrap();
            powershell::native_command_line(&words)
        })
        .collect();
    assert_arrived(&wine, &lists, &lines);
}

#[test]
fn cmd_keeps_an_unknown_variable_and_replaces_a_known_one_in_quotes_too() {
    let wine = ArgumentPrinter::find();
    let text = format!(r#"{} %NO_SUCH% "%OS%" 100%"#, wine.plain);
    let seen = wine.run(&[format!("{CMD_PREFIX}{text}")]);
    let line = cmd::parse(&text, |name| {
        (name == "OS").then(|| "Windows_NT".to_owned())
    })
    .unwrap();
    assert_eq!(
        seen[0].runtime,
        Some(argv::split(&line, ArgvParser::CRuntime)),
        "{line}"
    );
}

#[test]
fn a_quoted_program_without_quotes_around_the_whole_does_not_start() {
    let wine = ArgumentPrinter::find();
    let text = format!("\"{}\" \"b c\"", wine.spaced);
    let seen = wine.run(&[
        format!("{CMD_PREFIX}{text}"),
        format!("{CMD_PREFIX}\"{text}\""),
    ]);
    assert_eq!(seen[0], ParsedArguments::default());
    assert_eq!(
        seen[1].runtime,
        Some(vec![wine.spaced.clone(), "b c".to_owned()])
    );
}

fn assert_arrived(wine: &ArgumentPrinter, lists: &[Vec<String>], lines: &[String]) {
    let seen = wine.run(lines);
    for ((list, line), mut seen) in lists.iter().zip(lines).zip(seen) {
        // Rarely, once in many thousands of starts, a wine process ends at once.
        if seen == ParsedArguments::default() {
            seen = wine.run(std::slice::from_ref(line)).remove(0);
        }
        assert_eq!(seen.runtime.as_ref(), Some(list), "{line}");
        assert_eq!(seen.shell32.as_ref(), Some(list), "{line}");
    }
}
