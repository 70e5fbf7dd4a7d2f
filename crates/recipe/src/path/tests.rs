use wincimg_windows::search_path::PathAdditions;

use crate::tests::plan;

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
    let env = plan("[env]\nPATH = 'C:\\a;%PATH%;C:\\b'").unwrap();
    assert_eq!(both.path, env.path);
    let shown = both.to_string();
    for place in ["C:\\a, before", "C:\\b, after"] {
        let line = format!("path        {place} the base's\n");
        assert!(shown.contains(&line), "{shown}");
    }
    assert_eq!(both.base_requirements().hives.len(), 1);
}

#[test]
fn a_path_without_the_bases_is_an_ordinary_variable() {
    let plain = plan("[env]\nPATH = 'C:\\app;$PATH'").unwrap();
    assert_eq!(plain.path, None);
    assert_eq!(plain.env["PATH"], r"C:\app;$PATH");
    assert!(plain.base_requirements().is_empty());
}
