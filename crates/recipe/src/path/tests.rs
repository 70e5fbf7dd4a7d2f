use wincimg_windows::search_path::PathAdditions;

use crate::tests::{plan, problem};

fn additions(prepend: &[&str], append: &[&str]) -> PathAdditions {
    let owned = |folders: &[&str]| folders.iter().map(ToString::to_string).collect();
    PathAdditions {
        prepend: owned(prepend),
        append: owned(append),
    }
}

#[test]
fn every_way_to_say_it_says_the_same() {
    let front = Some(additions(&[r"C:\app", r"C:\Windows\x"], &[]));
    for body in [
        r"path = ['C:\app\', '%SystemRoot%\x']",
        "path = ['C:/app', 'C:/Windows/x']",
        r"path = { prepend = ['C:\app', '%windir%\x'] }",
        "[env]\nPath = 'C:\\app;C:\\Windows\\x;%PATH%'",
        "[variables.d]\ndefault = 'C:\\app'\n[env]\nPATH = '${d}; %SystemRoot%\\x ;%path%;'",
    ] {
        let plan = plan(body).unwrap();
        assert_eq!(plan.path, front, "{body}");
        assert!(plan.env.is_empty(), "{body}");
    }
    let both = plan(r"path = { prepend = ['C:\a'], append = ['C:\b'] }").unwrap();
    assert_eq!(both.path, Some(additions(&[r"C:\a"], &[r"C:\b"])));
    assert_eq!(
        both.path,
        plan("[env]\nPATH = 'C:\\a;%PATH%;C:\\b'").unwrap().path
    );
    let shown = both.to_string();
    assert!(
        shown.contains("path        C:\\a, before the base's\n"),
        "{shown}"
    );
    assert!(
        shown.contains("path        C:\\b, after the base's\n"),
        "{shown}"
    );
    assert_eq!(both.base_requirements().hives.len(), 1);
}

#[test]
fn a_path_without_the_bases_is_an_ordinary_variable() {
    let plain = plan("[env]\nPATH = 'C:\\app;$PATH'").unwrap();
    assert_eq!(plain.path, None);
    assert_eq!(plain.env["PATH"], r"C:\app;$PATH");
    assert!(plain.base_requirements().is_empty());
}

#[test]
fn what_cannot_be_in_path_is_reported_with_its_place() {
    for (body, printed) in [
        (
            r"path = ['C:\a;C:\b']",
            "recipe.toml:3:9: invalid folder \"C:\\\\a;C:\\\\b\" for PATH: it has a semicolon",
        ),
        (
            "path = ['app']",
            "3:9: invalid folder \"app\" for PATH: expected an absolute folder",
        ),
        ("path = { append = ['%PATH%'] }", "3:20: invalid folder"),
        ("path = { apend = [] }", "unknown field `apend`"),
        (
            r"path = 'C:\app'",
            r"expected a list of folders, such as ['C:\\app']",
        ),
        (
            "path = []\n[env]\nPath = 'x'",
            "5:8: env.Path and path both set PATH",
        ),
        ("[env]\nPATH = 'app;%PATH%'", "4:8: invalid folder \"app\""),
        ("[env]\nPATH = '%PATH%\\app'", "4:8: invalid folder"),
    ] {
        let problem = problem(body);
        assert!(
            problem.contains(&printed.replace(r"\\app'", r"\app'")),
            "{body}: {problem}"
        );
    }
}
