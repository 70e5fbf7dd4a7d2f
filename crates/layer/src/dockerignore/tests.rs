use proptest::prelude::*;

use super::*;

fn rules(text: &str) -> IgnoreRules {
    IgnoreRules::read(text, Path::new(FILE_NAME)).unwrap()
}

#[track_caller]
fn check(text: &str, left_out: &[&str], kept: &[&str]) {
    let rules = rules(text);
    for path in left_out {
        assert!(rules.is_ignored(path), "{text:?} keeps {path:?}");
    }
    for path in kept {
        assert!(!rules.is_ignored(path), "{text:?} leaves {path:?} out");
    }
}

#[test]
fn a_plain_name_means_one_path_from_the_top_and_all_below_it() {
    check(
        "obj",
        &["obj", "obj/a", "obj/a/b"],
        &["src/obj", "object", "ob"],
    );
    check(
        "src/obj/",
        &["src/obj", "src/obj/a"],
        &["obj", "src/object"],
    );
    check("/obj", &["obj"], &["src/obj"]);
    check("./a/../b//c/.", &["b/c", "b/c/d"], &["a", "b", "c"]);
}

#[test]
fn a_star_and_a_question_mark_stay_within_a_name() {
    check("*.log", &["a.log", ".log"], &["a/b.log", "a.logs"]);
    check("*/*.log", &["a/b.log"], &["a.log", "a/b/c.log"]);
    check("a?c", &["abc", "aüc"], &["ac", "a/c", "abbc"]);
    check("temp*", &["temp", "temporary", "temp.d/x"], &["a/temp"]);
}

#[test]
fn two_stars_stand_for_any_number_of_folders() {
    check("**/*.log", &["a.log", "a/b.log", "a/b/c.log"], &["log"]);
    check("a/**/z", &["a/z", "a/b/z", "a/b/c/z"], &["az", "a/bz", "z"]);
    check("a/**", &["a/b", "a/b/c"], &["a", "b/a"]);
    check("**", &["a", "a/b"], &[]);
    check("**z", &["z", "a/z"], &["az", "a/bz"]);
    check("a**z", &["az", "ab/z"], &["abz"]);
}

#[test]
fn brackets_hold_characters_and_ranges() {
    check("[a-c]x", &["ax", "cx"], &["dx", "x", "-x"]);
    check("[^a]x", &["bx"], &["ax"]);
    check(r"[\]\-]x", &["]x", "-x"], &["ax"]);
    check("[ab-d]", &["a", "b", "d"], &["-", "e"]);
}

#[test]
fn a_backslash_takes_the_meaning_away() {
    check(r"\*", &["*"], &["a"]);
    check(r"\!a", &["!a"], &["a"]);
    check(r"a\[", &["a["], &["a"]);
}

#[test]
fn the_last_rule_that_matches_decides() {
    check("*.md\n!README.md", &["a.md"], &["README.md"]);
    check("!README.md\n*.md", &["README.md"], &[]);
    check(
        "*.md\n!README*.md\nREADME-secret.md",
        &["README-secret.md"],
        &["README-old.md"],
    );
    check(
        "docs\n!docs/keep",
        &["docs", "docs/a"],
        &["docs/keep", "docs/keep/b"],
    );
    check("*\n! src", &["a"], &["src", "src/a"]);
    // Docker does not look at a rule with ! in a folder that it did not exclude.
    check(
        "src/secret\n!src",
        &["src/secret", "src/secret/key"],
        &["src/m"],
    );
    check("**/secret\n!src", &["src/secret/key"], &["src/m"]);
    check("a\n!a/b\na/b/c\n!a", &[], &["a/b/c"]);
}

#[test]
fn comments_blank_lines_spaces_and_a_byte_order_mark_are_not_patterns() {
    check(
        "\u{feff}# obj\n\n  \t\r\n  obj  \r\n #x\n",
        &["obj", "#x"],
        &["# obj", "x"],
    );
}

#[test]
fn a_file_written_on_windows_has_backslashes_between_names() {
    // The template of Visual Studio.
    check(
        "*\n!obj\\Docker\\publish\\*\n!obj\\Docker\\empty\\\n",
        &["obj/a", "a", "obj/Docker/a"],
        &["obj/Docker/publish/a", "obj/Docker/empty/a"],
    );
    check(r"bin\", &["bin/a"], &["a/bin"]);
    // Where nothing shows a separator, it escapes.
    check(r"a\*", &["a*"], &["a/b"]);
    check("# a\\b\na\\*", &["a*"], &["a/b"]);
}

#[test]
fn what_is_no_pattern_is_named_with_its_line() {
    for (text, expected) in [
        ("a\n[a", r#"2: invalid pattern "[a": a [ is not closed"#),
        ("!", r#"1: invalid pattern "!": no pattern after the !"#),
        (
            "[]a",
            r#"1: invalid pattern "[]a": found ], expected a character"#,
        ),
        (
            "[a-]",
            r#"1: invalid pattern "[a-]": found ], expected a character"#,
        ),
    ] {
        let error = IgnoreRules::read(text, Path::new(FILE_NAME)).unwrap_err();
        assert_eq!(error.to_string(), format!(".dockerignore:{expected}"));
    }
}

#[test]
fn no_more_of_a_path_is_read_than_may_match() {
    let rules = rules(&"a".repeat(16_000));
    let path = "b".repeat(200);
    assert!((0..300).all(|number| !rules.is_ignored(&format!("{path}{number}"))));
}

#[test]
fn a_pattern_full_of_stars_takes_no_time() {
    let rules = rules(&format!("{}z", "*a**/".repeat(200)));
    assert!(!rules.is_ignored(&"a/".repeat(400)));
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in ".*", path in "[a/.*]*") {
        if let Ok(rules) = IgnoreRules::read(&text, Path::new(FILE_NAME)) {
            rules.is_ignored(&path);
        }
    }

    #[test]
    fn a_path_leaves_itself_out_and_only_what_is_below(
        path in "[a-c]{1,3}(/[a-c]{1,3}){0,3}",
        other in "[a-c]{1,3}(/[a-c]{1,3}){0,3}",
    ) {
        let below = other == path || other.starts_with(&format!("{path}/"));
        prop_assert_eq!(rules(&path).is_ignored(&other), below);
    }
}
