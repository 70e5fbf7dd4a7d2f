use wincimg_common::diagnose::{Diagnose as _, Problem};

use super::{EXAMPLES, example};
use crate::tests::{hint, plan, plan_with, recipe};

#[test]
fn the_examples_for_mistakes_are_right() {
    for line in EXAMPLES {
        let (key, _) = line.split_once(" = ").unwrap();
        assert_eq!(example(key), Some(line));
        let own = match key {
            "name" => "base = \"nanoserver\"",
            "base" | "base_image" => "name = \"app\"",
            _ => "name = \"app\"\nbase = \"nanoserver\"",
        };
        let read = recipe(&format!("{own}\n{line}\n"));
        assert!(read.is_ok(), "{line}: {}", read.unwrap_err());
    }
}

#[test]
fn unknown_keys_are_refused_with_their_place() {
    let below = "name = \"x\"\nbase = \"y\"\n[[files]]\nfrom = \"a\"\n  too = \"b\"";
    for (text, expected) in [
        (
            "name = \"x\"\nbase = \"y\"\nfiels = 1\n",
            "recipe.toml:3:1: unknown field `fiels`",
        ),
        (below, "recipe.toml:5:3: "),
        ("name = \"x\"", "missing field `base`"),
        ("name = \"Über\"\nbase = \"y\"", "recipe.toml:1:8: "),
    ] {
        let error = recipe(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_slip_is_shown_in_its_line_with_what_was_meant() {
    for (line, problem, mark, hint) in [
        (
            "fiels = 1",
            "unknown field `fiels`",
            "  3 | fiels = 1\n    | ^^^^^",
            "did you mean `files`?",
        ),
        (
            "[variables.port]\ntype = \"integr\"",
            "unknown variant `integr`",
            "  4 | type = \"integr\"\n    |        ^^^^^^^^",
            "did you mean `integer`?",
        ),
        (
            "[variables.port]\ndefualt = 1",
            "unknown field `defualt`",
            "  4 | defualt = 1\n    | ^^^^^^^",
            "did you mean `default`?",
        ),
        (
            "user = nanouser",
            "the string nanouser has no quotes",
            "  3 | user = nanouser\n    |        ^^^^^^^^",
            "quote it: user = \"nanouser\"",
        ),
        (
            "user = ContainerUser # who",
            "the string ContainerUser has no quotes",
            "  3 | user = ContainerUser # who\n    |        ^^^^^^^^^^^^^",
            "quote it: user = \"ContainerUser\"",
        ),
        (
            "[variables.go]\ndefault = 1.26 # a flavour",
            "invalid type: floating point `1.26`",
            "  4 | default = 1.26 # a flavour\n    |           ^^^^",
            "quote it: default = \"1.26\"",
        ),
    ] {
        let error = recipe(&format!("name = \"x\"\nbase = \"y\"\n{line}\n")).unwrap_err();
        assert!(error.to_string().contains(problem), "{line}: {error}");
        let excerpt = error.diagnosis().excerpt.map(|it| it.to_string());
        assert_eq!(excerpt.as_deref(), Some(mark), "{line}");
        assert_eq!(error.diagnosis().hint.as_deref(), Some(hint), "{line}");
    }
    let error = recipe("name = \"x\"\nbase = nanoserver\n").unwrap_err();
    let expected = "recipe.toml:2:8: the string nanoserver has no quotes";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_key_below_the_wrong_table_is_one_to_move() {
    let file = "[[files]]\ncontent = ''\nto = '/a'\n";
    for (body, problem, help) in [
        (
            format!("{file}entrypoint = ['a.exe']"),
            "6:1: unknown field `entrypoint`",
            "for the image's entrypoint, move the line above the first [table]",
        ),
        (
            format!("{file}logs = ['C:\\a.log']"),
            "6:1: unknown field `logs`",
            "for the image's logs, move the line above the first [table]",
        ),
        (
            "[env] # of the shop\nA = '1'\npath = { append = ['C:\\jdk\\bin'] }".to_owned(),
            "invalid type: map",
            "for the image's path, move the line above the first [table]",
        ),
        (
            "[registry]\nkey = 'HKLM\\SOFTWARE\\X'".to_owned(),
            "3:1: invalid type: map",
            "write [[registry]]: each is an entry of a list",
        ),
        (
            "[iis.sites]\nname = 'a'".to_owned(),
            "3:1: invalid type: map",
            "write [[iis.sites]]: each is an entry of a list",
        ),
        (
            "[[run]]\ncommand = \"msiexec /i x\" # quiet".to_owned(),
            "4:11: invalid type: string",
            "write it like this: shell = \"msiexec /i x\"",
        ),
    ] {
        let error = recipe(&format!("name = \"x\"\nbase = \"y\"\n{body}\n")).unwrap_err();
        assert!(error.to_string().contains(problem), "{body}: {error}");
        assert_eq!(hint(&error), help, "{body}");
    }
    let warnings = |body: &str| plan(body).unwrap().warnings;
    assert_eq!(
        warnings("[env]\nA = '1'\nuser = \"ContainerUser\"\n[labels]\ncmd = 'serve'"),
        [
            "recipe.toml:5: user is a variable here: for the image's user, move the line above the first [table]",
            "recipe.toml:7: cmd is a label here: for the image's cmd, move the line above the first [table]",
        ]
    );
    for meant in [
        "env = { user = 'a' }",
        "[env]\nUSER = 'a'\nname = 'b'\n\"cmd\" = 'c'",
        "user = 'ContainerUser'\n[env]\nuser = 'a'",
        "[labels]\nauthor = 'a'\ndescription = 'b'",
    ] {
        assert!(warnings(meant).is_empty(), "{meant}");
    }
}

#[test]
fn an_error_of_the_base_is_placed() {
    let recipe = recipe("name = \"x\"\nbase = \"nanoserver:1\"\n").unwrap();
    let error = recipe.base_error(&Problem::request("base/name", "no base").hint("write x"));
    assert_eq!(error.to_string(), "recipe.toml:2:8: no base");
    let diagnosis = error.diagnosis();
    assert_eq!(diagnosis.code, "base/name");
    assert_eq!(diagnosis.hint.as_deref(), Some("write x"));
}

#[test]
fn a_setting_is_shown_as_it_was_typed() {
    let recipe =
        recipe("name = \"x\"\nbase = \"nanoserver\"\n[variables.port]\ntype = \"integer\"\n");
    let recipe = recipe.unwrap();
    let shown = |name, value| {
        let error = plan_with(&recipe, &[(name, value)]).unwrap_err();
        let diagnosis = error.diagnosis();
        (diagnosis.excerpt.unwrap().to_string(), diagnosis.hint)
    };
    let (excerpt, hint) = shown("prot", "secret");
    assert_eq!(excerpt, "  --set prot=…\n        ^^^^");
    assert_eq!(hint.as_deref(), Some("did you mean \"port\"?"));
    let (excerpt, _) = shown("port", "80\n80");
    assert_eq!(excerpt, "  --set port=80\\n80\n             ^^^^^^");
}

#[test]
fn a_path_with_escapes_is_shown_in_single_quotes() {
    for (line, text) in [
        (r#"entrypoint = ["C:\new\run.exe"]"#, r"C:\new\run.exe"),
        (r#"working_dir = "C:\app\x" # as "usual""#, r"C:\app\x"),
        (r#"volumes = ["C:/a", "C:\Users\me"]"#, r"C:\Users\me"),
        (r#"env = { A = "50\%" }"#, r"50\%"),
    ] {
        let shown = hint(&plan(line).unwrap_err());
        assert_eq!(shown, format!("write it in single quotes: '{text}'"));
    }
    let quoted = plan(r#"working_dir = "C:\it's""#).unwrap_err();
    let example = r"write paths in single quotes: 'C:\app'";
    assert_eq!(hint(&quoted), example);
    for right in [
        r"env = { A = 'C:\temp', B = '''C:\new''' }",
        r#"env = { A = """C:\temp""" } # "C:\temp""#,
        r#"env = { A = "C:\\temp", B = "C:/temp", "C:\temp" = "x" }"#,
        r#"env = { A = "c:\n", B = "c:\n  d: 1", C = "key:\nvalue", D = "a:\tb" }"#,
        r#"labels = { a = "c:\nd" }"#,
        "[[files]]\ncontent = \"c:\\nd: 1\"\nto = '/a'",
    ] {
        plan(right).unwrap();
    }
}
