//! Services, users and their variables.

use wincimg_registry::hive::{Hive, Semantics};
use wincimg_registry::{RegistryData, RegistryEdit};
use wincimg_testkit::image_locations::put_at;
use wincimg_testkit::test_bases::{FOLDER, LayerTar, delta_hive, image_of, whole_hive};

use super::{Bench, OWN, SERVICE, base_layer, files_of, key_in, key_of, printed};
use crate::base_permissions::entries_of;
use crate::failure::Failure;
use crate::inside::VERSION;

#[test(multi_thread)]
async fn services_are_deleted_and_start_again_as_sc_says() {
    let bench = Bench::new().await.indexed();
    let layers = bench.layers(
        r#"RUN sc create Worker binPath= C:\worker.exe && sc failure Worker reset= 86400 actions= restart/60000/run/1000// command= "C:\fix.cmd" && sc failureflag Worker 1
RUN sc delete worker
RUN sc failure W3SVC reset= infinite actions= restart/5000
RUN sc delete w3svc"#,
    );
    let key = |layer: usize, name: &str| {
        let key = format!(r"{SERVICE}\{name}");
        key_of(&layers[layer], "System_Delta", &key)
    };
    let made = key(0, "Worker");
    for line in [
        "\"FailureActions\"=hex(3):80,51,01,00,00,00,00,00,01,00,00,00,03,00,00,00,14,00,00,00,01,00,00,00,60,ea,00,00,03,00,00,00,e8,03,00,00,00,00,00,00,00,00,00,00",
        r#""FailureCommand"="C:\\fix.cmd""#,
        "\"FailureActionsOnNonCrashFailures\"=dword:00000001",
    ] {
        assert!(made.iter().any(|own| own == line), "{line}: {made:?}");
    }
    let hives: Vec<Vec<u8>> = layers
        .iter()
        .map(|layer| files_of(layer)["Hives/System_Delta"].clone())
        .collect();
    let hives: Vec<Hive<'_>> = hives.iter().map(|it| Hive::read(it).unwrap()).collect();
    let service = |layer: usize, name: &str| {
        hives[layer]
            .root
            .at(&format!(r"ControlSet001\Services\{name}"))
            .unwrap()
    };
    // `sc create` writes no descriptor of the service.
    assert!(service(0, "Worker").subkeys.is_empty());
    assert_eq!(service(1, "Worker").layer.semantics, Semantics::Tombstone);
    assert_eq!(key(2, "w3svc").len(), 1);
    assert_eq!(service(3, "w3svc").layer.semantics, Semantics::Tombstone);
    for (line, code) in [
        ("sc delete nobody", "dockerfile/fails"),
        (
            "sc failure nobody reset= 1 actions= restart/1",
            "dockerfile/fails",
        ),
        ("sc failure w3svc reset= 1", "dockerfile/not-understood"),
        ("sc sdset w3svc D:(A;;GA;;;BA)", "dockerfile/not-understood"),
    ] {
        bench
            .refused(&format!("RUN {line}"))
            .is(code, &[])
            .names(&["Dockerfile:3: ", "sc: "]);
    }
}

/// A hive of a user, as a base has it.
fn user_hive() -> Vec<u8> {
    let edit = RegistryEdit::SetValue {
        key: r"HKLM\SOFTWARE\Environment".parse().unwrap(),
        name: "TEMP".to_owned(),
        data: RegistryData::expand_sz(r"%USERPROFILE%\AppData\Local\Temp"),
    };
    whole_hive(&[edit])
}

#[test(multi_thread)]
async fn user_variables_are_set_in_the_hive_of_the_base() {
    let mut layer = base_layer();
    let profile = "Files/Users/ContainerAdministrator";
    layer.folder(profile, Some(FOLDER)).entry(
        &format!("{profile}/NTUSER.DAT"),
        tar::EntryType::Regular,
        "34",
        Some(OWN),
        &user_hive(),
        None,
    );
    let base = image_of(VERSION, vec![layer.tar()]);
    for bench in [Bench::on(&base).await, Bench::on(&base).await.indexed()] {
        let layers = bench.layers(
            r#"RUN setx KIND small && setx TEMP C:\temp
RUN mkdir C:\%KIND% && setx MORE "%KIND% %KIND%"
RUN powershell "[Environment]::SetEnvironmentVariable('KIND', 'big', 'User')""#,
        );
        let file = &format!("{profile}/NTUSER.DAT");
        let variables = |layer: usize| key_in(&files_of(&layers[layer])[file], r"\Environment");
        assert_eq!(variables(0), [r#""KIND"="small""#, r#""TEMP"="C:\\temp""#]);
        assert!(files_of(&layers[1]).contains_key("Files/small/"));
        assert_eq!(variables(1)[1], r#""MORE"="small small""#);
        assert_eq!(variables(2)[0], r#""KIND"="big""#);
        let (security, attributes) = &entries_of(&layers[0])[file];
        assert_eq!((security, attributes.as_str()), (&Some(printed(OWN)), "34"));
        assert!(
            !files_of(&layers[0])
                .keys()
                .any(|path| path.contains("Delta"))
        );
    }
    // So are those of an image below.
    let bench = Bench::on(&base).await;
    let lines = "RUN echo %KIND%>C:\\k.txt\nRUN if defined KIND mkdir C:\\yes\n\
                 RUN powershell mkdir C:\\$env:KIND\nRUN echo %PATH%>C:\\p.txt";
    let below = "RUN setx KIND small\nRUN setx PATH C:\\tools";
    bench.build_on(below, lines).success();
    let built = bench.built();
    let [_, _, kind, is_set, named, path] = built.as_slice() else {
        panic!("{built:?}");
    };
    assert_eq!(files_of(kind)["Files/k.txt"], b"small\r\n");
    assert!(files_of(is_set).contains_key("Files/yes/"));
    assert!(files_of(named).contains_key("Files/small/"));
    let path = String::from_utf8_lossy(&files_of(path)["Files/p.txt"]).into_owned();
    assert!(path.ends_with("\\v1.0\\;C:\\tools\r\n"), "{path}");
    // Windows creates the hive of a user who was never logged on.
    for instructions in ["RUN setx A b", "USER ContainerUser\nRUN setx A b"] {
        let bench = Bench::new().await.indexed();
        bench
            .refused(instructions)
            .is("dockerfile/not-understood", &["NTUSER.DAT"])
            .names(&["setx: "])
            .advises(&["setx /M"]);
    }
}

#[test(multi_thread)]
async fn an_image_below_without_an_index_can_hide_programs_of_windows() {
    let bench = Bench::new().await;
    for (below, line, why) in [
        (
            "RUN setx /M PATH C:\\x",
            "xcopy /y C:\\data\\own.txt C:\\n\\",
            "it is not on PATH",
        ),
        (
            "RUN del C:\\Windows\\System32\\xcopy.exe",
            "xcopy /y C:\\data\\own.txt C:\\n\\",
            "the image has no xcopy",
        ),
        (
            "COPY a.txt C:/app/xcopy.exe\nWORKDIR C:\\app",
            "xcopy /y C:\\data\\own.txt C:\\n\\",
            "it runs xcopy.exe from the working folder",
        ),
    ] {
        let refused = bench.build_on(below, &format!("RUN {line}"));
        let refused = refused.failure();
        let printed = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert_contains!(printed, why);
    }
    // Others are not read for that.
    let below = "RUN setx /M PATH \"%PATH%;C:\\x\"\nCOPY a.txt C:/x/xcopy.exe\nWORKDIR C:\\app";
    let built = bench.build_on(below, "RUN whoami").success();
    let printed = String::from_utf8_lossy(&built.get_output().stderr).into_owned();
    assert!(!printed.contains("from its layers"), "{printed}");
}

#[test(multi_thread)]
async fn users_are_looked_up_among_the_accounts_of_the_base() {
    let name = |name: &str| RegistryEdit::SetValue {
        // A hive does not say which one it is.
        key: format!(r"HKLM\SOFTWARE\SAM\Domains\Account\Users\Names\{name}")
            .parse()
            .unwrap(),
        name: String::new(),
        data: RegistryData::dword(0),
    };
    let mut upper = LayerTar::default();
    let accounts = delta_hive(&[name("Guest"), name("app")]);
    upper
        .folder("Hives", None)
        .file("Hives/Sam_Delta", &accounts, None);
    let bench = Bench::new().await;
    let host = bench.server.host();
    let name = format!("{host}/own/app:{VERSION}");
    let base = image_of(VERSION, vec![base_layer().tar(), upper.tar()]);
    put_at(&base, &name).await;
    let build = |user: &str| {
        let text = format!("FROM {name}\nUSER {user}\n");
        bench.build_with(&text, &["--format", "json"])
    };
    // Of a base that nobody looked into, nothing is known but its name.
    build("apps").success();
    bench.machine.json(&["base", "index", &name]);
    build("App").success();
    Failure::of(build("apps").failure().get_output())
        .is("dockerfile/invalid", &["\"apps\""])
        .names(&["Dockerfile:2: "])
        .on_line(2);
}
