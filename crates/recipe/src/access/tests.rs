use super::super::tests::plan;

fn access(text: &str) -> String {
    let plan = plan(&format!("[[access]]\n{text}")).unwrap().to_string();
    let mut lines = plan.lines();
    let line = lines.find_map(|line| line.strip_prefix("access"));
    line.unwrap().trim().to_owned()
}

#[test]
fn rights_are_a_line_of_the_plan() {
    let two = "path = 'C:/app/data'\ngrant = { ContainerUser = 'modify', 'IIS AppPool\\${name}' = 'read_execute' }";
    let line = r"C:\app\data: ContainerUser modify, IIS AppPool\app read_execute";
    assert_eq!(access(two), line);
    let folder = "path = '/app'\ngrant = { Users = 'full' }\ninherit = 'none'";
    let line = r"C:\app: Users full, without its contents";
    assert_eq!(access(folder), line);
}

#[test]
fn only_rights_on_folders_of_the_base_require_its_contents() {
    let needs = |path: &str| {
        let file = "[[files]]\ncontent = 'x'\nto = 'C:\\app\\data\\x.txt'\n[[files]]\nfrom = 'starter'\nto = '/lib'\n";
        let access = format!("[[access]]\npath = '{path}'\ngrant = {{ Users = 'read' }}\n");
        plan(&format!("working_dir = '/work/here'\n{file}{access}"))
            .unwrap()
            .base_requirements()
            .files
    };
    for path in [
        "/app", "/APP/data", "/app/data/x.txt", "/lib/dotnet.rs", "/work", "/work/here",
    ] {
        assert!(!needs(path), "{path}");
    }
    for path in [
        "/app/other", "/lib/none.rs", "/inetpub", "/app/data/x.txt/y",
    ] {
        assert!(needs(path), "{path}");
    }
}

#[test]
fn rights_on_a_folder_that_the_base_may_have_need_a_look_into_it_whatever_is_put_there() {
    let needs = |base: &str, path: &str| {
        // A folder in Windows needs the look by itself.
        let folder = [r"C:\made", path][usize::from(path.starts_with(r"C:\Windows"))];
        let text = format!(
            "[[files]]\ncontent = 'x'\nto = 'C:\\inetpub\\wwwroot\\x.htm'\n\
             [[files]]\ncontent = 'x'\nto = 'C:\\Program Files\\App\\x.exe'\n\
             [[files]]\ncontent = 'x'\nto = 'C:\\app\\x.exe'\n\
             [[layers]]\nname = 'a'\nfolders = ['{folder}']\n\
             [[files]]\nlayer = 'a'\ncontent = 'x'\nto = 'C:\\data\\x.txt'\n\
             [[access]]\npath = '{path}'\ngrant = {{ Users = 'read' }}\n"
        );
        let with_layer = format!("{text}layer = 'a'\n");
        [text, with_layer].map(|text| {
            let mut plan = plan(&text).unwrap();
            plan.base.name = base.to_owned();
            plan.base_requirements().files
        })
    };
    for (path, nano, other) in [
        // What the last layer puts there is not in layer a yet.
        (r"C:\inetpub\wwwroot", [true, true], [true, true]),
        (r"C:\Program Files\App", [true, true], [true, true]),
        (r"C:\inetpub\wwwroot\x.htm", [false, true], [false, true]),
        (r"C:\app", [false, true], [true, true]),
        (r"C:\DATA", [false, false], [true, true]),
        // The base may have a folder that a recipe creates.
        (r"C:\made", [false, false], [true, true]),
        (r"C:\Windows\made", [true, true], [true, true]),
    ] {
        let bases = ["mcr.microsoft.com/windows/nanoserver:1809", "acme/app:1"];
        let found = bases.map(|base| needs(base, path));
        assert_eq!(found, [nano, other], "{path}");
    }
}

#[test]
fn a_folder_in_windows_needs_a_look_into_the_base_and_one_in_program_files_none() {
    let needs = |text: &str| plan(text).unwrap().base_requirements().files;
    for (path, expected) in [
        (r"C:\Windows\app", true),
        (r"C:\windows\system32\app", true),
        (r"C:\Windows\Temp", false),
        (r"C:\Program Files\App", false),
        (r"C:\ProgramData\App\logs", false),
        (r"C:\inetpub\site", false),
        (r"C:\Users\ContainerUser\app", false),
        (r"C:\app", false),
    ] {
        let working_dir = needs(&format!("working_dir = '{path}'\n"));
        let folder = needs(&format!("[[layers]]\nfolders = ['{path}']\n"));
        assert_eq!([working_dir, folder], [expected; 2], "{path}");
    }
}
