use proptest::prelude::*;

use super::argv::{ArgvParser, join, quote, split};
use super::*;
use crate::testing::run_line as reader;
use crate::testing::shell_lines::{for_cmd, for_powershell};

/// The `RUN` line that runs this program with exactly these arguments.
fn run_instruction<S: AsRef<str>>(argv: &[S]) -> Result<String, QuotingError> {
    Ok(format!("RUN {}", exec_command(argv)?))
}

const READERS: [ArgvParser; 2] = [ArgvParser::CommandLineToArgvW, ArgvParser::CRuntime];
const ESCAPES: [Escape; 2] = [Escape::Backslash, Escape::Backtick];
const PROGRAM: &str = r"C:\Program Files\tool.exe";

/// Arguments with characters that are special to some parser.
fn argument() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec![
            "\"", "\\", "\\\"", " ", "\t", "%PATH%", "%a:b=c%", "%", "%%", "^", "&", "|", "<", ">",
            "<<EOF", " <<-E", "!x!", "'", "‘", "’", "‚", "‛", "“", "$env:x", "${x}", "$(1)", "`",
            "`n", "--%", "--", "#", "@", "(", ")", "{", "}", ";", ",", "=", "[", "]", "ü", "漢", "😀",
            "\u{a0}", "\u{2028}", "a", "b ", "C:\\dir\\", "/f", "%=", ":", "~",
        ]).prop_map(str::to_owned),
        1 => "[^\\x00\\r\\n\\x1a]{0,4}",
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn program() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        PROGRAM,
        "reg",
        "echo",
        "IF.exe",
        r"C:\Windows\System32\inetsrv\appcmd.exe",
        r"C:\R&D (x86)\it's ^a!.exe",
        r"C:\Tom’s\größe.exe",
        "a,b.exe",
        "--flag.exe",
        "[x].exe",
        "x`",
        "&",
    ])
    .prop_map(str::to_owned)
}

fn command() -> impl Strategy<Value = Vec<String>> {
    (program(), prop::collection::vec(argument(), 0..5))
        .prop_map(|(program, arguments)| std::iter::once(program).chain(arguments).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn a_run_line_comes_out_as_the_list_that_went_in(argv in command()) {
        for escape in ESCAPES {
            let line = run_instruction(&argv).unwrap();
            let read = reader::argv(escape, &line);
            prop_assert_eq!(&read, &argv, "{:?}: {}", escape, line);
        }
    }

    #[test]
    fn a_joined_command_line_reads_the_same_in_both_readers(argv in command()) {
        for reader in READERS {
            prop_assert_eq!(split(&join(&argv), reader), argv.clone());
        }
    }

    #[test]
    fn the_modules_own_readers_return_the_list_too(argv in command()) {
        let text = for_cmd(&argv, Escape::Backslash);
        let line = cmd::parse(&text, |name| (!name.starts_with('^')).then(String::new)).unwrap();
        prop_assert_eq!(&split(&line, ArgvParser::CRuntime), &argv);

        let text = for_powershell(&argv);
        let words = powershell::simple_command(&powershell::script(&text)).unwrap();
        let line = powershell::native_command_line(&words);
        prop_assert_eq!(&split(&line, ArgvParser::CRuntime), &argv);
    }

    #[test]
    fn no_text_makes_a_reader_panic(text in ".*") {
        for reader in READERS {
            let _ = split(&text, reader);
        }
        let _ = cmd::parse(&text, |name| Some(name.to_owned()));
        let _ = powershell::simple_command(&powershell::script(&text));
    }

    #[test]
    fn no_list_makes_the_writer_panic(argv in prop::collection::vec(any::<String>(), 0..4)) {
        if let Ok(line) = run_instruction(&argv) {
            let read = reader::argv(Escape::Backtick, &line);
            prop_assert_eq!(&read, &argv, "{}", line);
        }
    }
}

#[test]
fn command_lines_split_as_documented() {
    // The table of Microsoft's "Parsing C++ command-line arguments", then the doubled quotes.
    for (line, both) in [
        (r#"x "abc" d e"#, vec!["x", "abc", "d", "e"]),
        (r#"x a\\b d"e f"g h"#, vec!["x", r"a\\b", "de fg", "h"]),
        (r#"x a\\\"b c d"#, vec!["x", r#"a\"b"#, "c", "d"]),
        (r#"x a\\\\"b c" d e"#, vec!["x", r"a\\b c", "d", "e"]),
        (r#""C:\a b\" "c""#, vec![r"C:\a b\", "c"]),
        (r#"C:\a\ "" b"#, vec![r"C:\a\", "", "b"]),
        ("x \"open end", vec!["x", "open end"]),
        ("", vec![""]),
        (" x", vec!["", "x"]),
        ("x \t ", vec!["x"]),
    ] {
        for reader in READERS {
            assert_eq!(split(line, reader), both, "{line} {reader:?}");
        }
    }
    let doubled = r#"x "a""b c" d"#;
    assert_eq!(
        split(doubled, ArgvParser::CommandLineToArgvW),
        ["x", "a\"b", "c d"]
    );
    assert_eq!(split(doubled, ArgvParser::CRuntime), ["x", "a\"b c", "d"]);
    let glued = r#""C:\a b"\x.exe y"#;
    assert_eq!(
        split(glued, ArgvParser::CommandLineToArgvW),
        [r"C:\a b", r"\x.exe", "y"]
    );
    assert_eq!(split(glued, ArgvParser::CRuntime), [r"C:\a b\x.exe", "y"]);
}

#[test]
fn plain_arguments_stay_plain() {
    assert_eq!(quote(r"C:\inetpub\wwwroot\"), r"C:\inetpub\wwwroot\");
    assert_eq!(quote(r"a b\"), r#""a b\\""#);
    let argv = ["reg", "add", r"HKLM\SOFTWARE\x", "/v", "a", "/f"];
    assert_eq!(
        run_instruction(&argv).unwrap(),
        r#"RUN ["reg", "add", "HKLM\\SOFTWARE\\x", "/v", "a", "/f"]"#
    );
    assert_eq!(
        for_cmd(&argv, Escape::Backslash),
        r"reg add HKLM\SOFTWARE\x /v a /f"
    );
    assert_eq!(
        for_powershell(&argv),
        r#""& 'reg' 'add' 'HKLM\SOFTWARE\x' '/v' 'a' '/f'""#
    );
}

#[test]
fn the_site_name_that_appcmd_never_saw_reaches_it_from_every_shell() {
    let appcmd = r"C:\Windows\System32\inetsrv\appcmd.exe";
    let argv = [
        appcmd,
        "set",
        "config",
        "Default Web Site",
        "/+[fileExtension='.json']",
    ];
    assert_eq!(
        for_cmd(&argv, Escape::Backtick),
        r#"C:\Windows\System32\inetsrv\appcmd.exe set config ^"Default Web Site^" /+[fileExtension='.json']"#
    );
    assert_eq!(
        for_powershell(&argv),
        r#""& 'C:\Windows\System32\inetsrv\appcmd.exe' 'set' 'config' '\"Default Web Site\"' '/+[fileExtension=''.json'']'""#
    );
}

#[test]
fn a_line_never_ends_in_the_escape_character() {
    let argv = ["x.exe", r"C:\"];
    let text = |escape| for_cmd(&argv, escape);
    assert_eq!(text(Escape::Backtick), r"x.exe C:\");
    assert_eq!(text(Escape::Backslash), r#"x.exe ^"C:\\^""#);
}

#[test]
fn percent_signs_are_kept_from_cmd_by_a_caret_in_the_name() {
    let text = for_cmd(&["x", "%PATH%", "100%", "%y"], Escape::Backslash);
    assert_eq!(text, "x %^PATH%^ 100%^ %^y");
}

#[test]
fn cmd_takes_quotes_away_only_where_the_text_begins_with_one() {
    assert_eq!(cmd::strip_quotes(r#""a b" "c d""#), r#"a b" "c d"#);
    assert_eq!(cmd::strip_quotes(r#""a b" c"#), "a b c");
    assert_eq!(cmd::strip_quotes(r#"x "a b""#), r#"x "a b""#);
    assert_eq!(cmd::strip_quotes("\"open"), "open");
}

#[test]
fn a_text_that_is_more_than_one_command_is_refused() {
    let none = |_: &str| None;
    assert_eq!(
        cmd::parse("a && b", none),
        Err(cmd::CmdParseError::Operator('&'))
    );
    assert_eq!(cmd::parse("(a)", none), Err(cmd::CmdParseError::Start('(')));
    assert_eq!(
        cmd::parse(r#"a "b & c" ^& d"#, none).unwrap(),
        r#"a "b & c" & d"#
    );
    assert_eq!(powershell::simple_command("a; b"), None);
    assert_eq!(powershell::simple_command("a $x"), None);
    assert_eq!(powershell::simple_command("a \"$x\""), None);
    assert_eq!(powershell::simple_command("'a' b"), None);
    assert_eq!(
        powershell::simple_command("a \"b c\" 'd''e'").unwrap(),
        ["a", "b c", "d'e"]
    );
}

#[test]
fn variables_are_replaced_inside_and_outside_quotes() {
    let path = |name: &str| name.eq_ignore_ascii_case("path").then(|| "P".to_owned());
    assert_eq!(
        cmd::parse(r#"a %path% "%PATH%" %PATH:a=b% %other% 50%"#, path).unwrap(),
        r#"a P "P" P %other% 50%"#
    );
}

#[test]
fn what_no_quoting_can_carry_is_refused_with_its_place() {
    let refuse = |argv: &[&str]| run_instruction(argv).unwrap_err().to_string();
    assert_eq!(
        refuse(&["x", "\0"]),
        "the exec form cannot escape '\\0' in argument 1"
    );
    for program in ["", "a\"b", "C:\\dir\\", "a\nb", "a<b", "*.exe"] {
        let error = refuse(&[program]);
        assert!(error.starts_with("invalid program name"), "{error}");
    }
    assert_eq!(refuse(&[]), empty().to_string());
    let long = "x".repeat(8200);
    assert!(run_instruction(&["x", &long, "a\nb"]).is_ok());
    let long = "x".repeat(32_800);
    let error = refuse(&["x", &long]);
    assert!(
        error.ends_with("the limit of the exec form is 32766"),
        "{error}"
    );
}
