use std::fs;

use proptest::prelude::*;
use wincimg_common::diagnose::{Blame, Diagnose as _};
use wincimg_common::files::TextFile;
use wincimg_oci::document::ContainerConfig;
use wincimg_registry::UnknownBase;

use super::super::{
    DockerfileRequest, EvaluationResult, Inputs, StageBase, StageError, StageReplacement, Stages,
    run,
};
use super::*;

const BASE: &str = "mcr.microsoft.com/windows/nanoserver:ltsc2022";

/// A Dockerfile with its context folder.
struct Read {
    stages: Stages,
    _folder: tempfile::TempDir,
}

impl std::ops::Deref for Read {
    type Target = Stages;

    fn deref(&self) -> &Stages {
        &self.stages
    }
}

fn read(text: &str, replacements: &[(&str, &str)]) -> Read {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("Dockerfile");
    fs::write(&file, text).unwrap();
    fs::write(folder.path().join("a.txt"), "a").unwrap();
    let replacements = replacements.iter().map(|(name, text)| {
        let replacement = StageReplacement::parse(text, folder.path());
        ((*name).to_owned(), replacement)
    });
    let request = DockerfileRequest {
        skipped_actions: Vec::new(),
        choco_feed: None,
        replacements: replacements.collect(),
        file: TextFile::named(file),
        folder: folder.path().to_owned(),
        context: folder.path().to_owned(),
        target: None,
        arguments: vec![("GIVEN".to_owned(), "yes".to_owned())],
    };
    let stages = Stages::read(&request).unwrap();
    Read {
        stages,
        _folder: folder,
    }
}

fn inputs(stages: &Stages) -> Inputs {
    let known = |name: &str| {
        let base = StageBase {
            config: ContainerConfig::default(),
            inside: Arc::new(UnknownBase),
            has_user_variables: false,
        };
        (name.to_owned(), base)
    };
    Inputs {
        bases: stages.bases().into_iter().map(known).collect(),
        windows: Some(WindowsInputs::default()),
        ..Inputs::default()
    }
}

fn evaluated(text: &str) -> EvaluationResult {
    let stages = read(text, &[]);
    stages.evaluate(&inputs(&stages)).unwrap()
}

fn lines(segment: &WindowsSegment) -> Vec<usize> {
    segment.steps.iter().map(|step| step.line).collect()
}

fn failed_lines(error: &StageError) -> Vec<usize> {
    error.failed_lines().map(|it| it.line).collect()
}

#[test]
fn a_segment_has_the_settings_in_between_and_the_arguments_before() {
    let text = format!(
        "FROM {BASE}\nARG GIVEN=no\nARG NONE\nARG OTHER=1\nCOPY a.txt C:/a.txt\nONBUILD RUN x.exe\n\
         RUN one.exe $GIVEN\n# a comment\nENV A=1\nRUN two.exe \\\n  /quiet\nENV B=2\nCOPY a.txt C:/b.txt\n\
         CMD x\n"
    );
    let result = evaluated(&text);
    assert!(!result.is_complete());
    let [segment] = result.segments.as_slice() else {
        panic!("{:?}", result.segments);
    };
    assert_eq!(lines(segment), [7, 9, 10]);
    let sent = segment.dockerfile("repo.lan/x@sha256:1").dockerfile;
    assert_eq!(
        sent,
        "FROM repo.lan/x@sha256:1\nARG GIVEN OTHER\nRUN one.exe $GIVEN\nENV A=1\nRUN two.exe \\\n  \
         /quiet\n"
    );
    assert_eq!(
        segment.arguments,
        [("GIVEN", "yes"), ("OTHER", "1")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    );
    let for_older = segment.clone().with_single_arguments();
    let sent = for_older.dockerfile("x").dockerfile;
    assert!(sent.starts_with("FROM x\nARG GIVEN\nARG OTHER\nRUN "));
    for (segment, first) in [(segment, 3), (&for_older, 4)] {
        assert_eq!(segment.step(first).map(|step| step.line), Some(7));
        assert_eq!(segment.step(first + 2).map(|step| step.line), Some(10));
        assert_eq!(segment.step(first - 1), None);
        assert_eq!(segment.layer_numbers(), [1, first, first + 2]);
        assert_eq!(segment.instruction_count(), first + 2);
    }
    let below = segment.below.as_ref().unwrap();
    assert!(below.container.on_build.is_empty());
    assert_eq!(below.layers().count(), 1);
    // The rest, with what the daemon does not know.
    let container = &result.instructions.container;
    assert_eq!(container.on_build, ["RUN x.exe"]);
    assert_eq!(container.env, ["A=1", "B=2"]);
    let rest: Vec<_> = result.instructions.steps.iter().map(|it| it.line).collect();
    assert_eq!(rest, [Some(12), Some(13), Some(14)]);
}

#[test]
fn a_dockerfile_can_have_the_values_of_its_arguments() {
    let text = format!(
        "# escape=`\nFROM {BASE}\nARG GIVEN=no\nCOPY a.txt C:/a.txt\nRUN one.exe\nARG NONE\n\
         ARG A=\"it's `\"\" B\nWORKDIR C:/x\nrun two.exe\n"
    );
    let mut segment = evaluated(&text).segments.remove(0);
    let sent = segment.dockerfile_with_values("repo.lan/x@sha256:1");
    assert_eq!(
        sent.unwrap(),
        "# escape=`\nFROM repo.lan/x@sha256:1\nARG GIVEN='yes'\nRUN one.exe\nARG NONE\n\
         ARG A='it'\"'\"'s \"' B\nWORKDIR C:/x\nrun two.exe\n"
    );
    // Those of FROM, both RUN lines and WORKDIR.
    assert_eq!(segment.layer_numbers(), [1, 3, 6, 7]);
    assert_eq!(segment.instruction_count(), 7);
    assert_eq!(segment.step(6).unwrap().text, "WORKDIR C:/x");
    segment.arguments.insert("A".to_owned(), "1\n2".to_owned());
    let refused = segment.dockerfile_with_values("x").unwrap_err();
    assert_eq!(refused, "A");
}

#[test]
fn an_argument_that_is_declared_again_has_the_value_of_its_line() {
    for (steps, expected) in [
        (
            "ARG V=1\nRUN a.exe\nARG V=2\nRUN b.exe\n",
            &["[2, 3] 1", "[5] 2"][..],
        ),
        ("ARG V=1\nENV W=$V\nARG V=2\nRUN a.exe\n", &["[5] 2"]),
        (
            "COPY a.txt C:/x\nARG V=1\nRUN a.exe\nARG V=2\nCOPY a.txt C:/y\n",
            &["[4] 1"],
        ),
        (
            "RUN a.exe\nARG V=1\nENV W=$V\nRUN b.exe\nENV X=$V\nARG V=2\n",
            &["[2, 3, 4, 5] 1"],
        ),
    ] {
        let result = evaluated(&format!("FROM {BASE}\n{steps}"));
        let values = result
            .segments
            .iter()
            .map(|it| format!("{:?} {}", lines(it), it.arguments["V"]));
        assert_eq!(values.collect::<Vec<_>>(), expected, "{steps}");
    }
}

#[test]
fn the_history_has_the_arguments_of_released_stages() {
    let text = format!(
        "FROM {BASE} AS below\nARG GIVEN\nCOPY a.txt C:/\nRUN a.exe\nFROM {BASE} AS build\n\
         ARG GIVEN\nCOPY a.txt C:/\nRUN b.exe\nFROM below\nCOPY --from=build C:/x C:/x\n"
    );
    let result = evaluated(&text);
    let first = |segment: &WindowsSegment| {
        let below = segment.below.as_ref().unwrap();
        (segment.is_of_target, below.steps[0].created_by.clone())
    };
    let mut found: Vec<_> = result.segments.iter().map(first).collect();
    found.sort();
    assert_eq!(
        found,
        [
            (false, "ARG GIVEN".to_owned()),
            (true, "ARG GIVEN=yes".to_owned())
        ]
    );
}

#[test]
fn the_last_stage_that_reads_another_takes_its_state_over() {
    let text = format!(
        "FROM {BASE} AS s0\nCOPY a.txt C:/a.txt\nFROM s0 AS s1\nENV A=1\nFROM s1 AS s2\n\
         COPY --from=s0 /a.txt C:/b.txt\nFROM s2\nENV B=1\n"
    );
    let stages = read(&text, &[]);
    let inputs = inputs(&stages);
    let mut evaluation = Evaluation::new(&stages, &inputs);
    let state = evaluation.evaluate_stage(stages.target);
    assert!(evaluation.errors.is_empty(), "{:?}", evaluation.errors);
    assert_eq!(state.steps.len(), 4);
    assert!(evaluation.done.is_empty());
}

#[test]
fn a_stage_that_triggers_of_a_base_copy_from_is_evaluated_once() {
    let other = "mcr.microsoft.com/windows/servercore:ltsc2022";
    let text = format!(
        "FROM {BASE} AS s0\nCOPY a.txt C:/a.txt\nFROM {other} AS s1\nFROM {other}\n\
         COPY --from=s0 /a.txt C:/c.txt\nCOPY --from=s1 /b.txt C:/d.txt\n"
    );
    let stages = read(&text, &[]);
    let mut inputs = inputs(&stages);
    let trigger = "COPY --from=s0 /a.txt C:/b.txt".to_owned();
    let base = inputs.bases.get_mut(other).unwrap();
    base.config.on_build.push(trigger);
    let result = stages.evaluate(&inputs).unwrap();
    let lines = result.placements.iter().map(|step| step.line);
    assert_eq!(lines.collect::<Vec<_>>(), [2, 3, 4, 5, 6]);
}

#[test]
fn a_trigger_for_windows_names_the_engine_that_runs_it() {
    let stages = read(&format!("FROM {BASE}\n"), &[]);
    let mut inputs = inputs(&stages);
    let base = inputs.bases.get_mut(BASE).unwrap();
    base.config.on_build.push("RUN one.exe".to_owned());
    let error = stages.evaluate(&inputs).unwrap_err();
    assert_eq!(error.diagnosis().blame, Blame::Windows);
    let hint = error.diagnosis().hint.unwrap();
    assert!(hint.ends_with(" base: --engine docker"), "{hint}");
    let hint = error.hint_with_daemon(DAEMON).unwrap();
    let end = format!(" base: {DAEMON} --engine docker");
    assert!(hint.ends_with(&end), "{hint}");
}

#[test]
fn what_a_base_may_have_does_not_fail_but_runs_on_windows() {
    for line in [
        r#"RUN ["mkdir", "C:/a"]"#,
        r#"SHELL ["pwsh", "-Command"]
RUN Invoke-WebRequest https://e.com/a.zip -OutFile C:/Windows/a/"#,
    ] {
        let result = evaluated(&format!("FROM {BASE}\n{line}\n"));
        assert_eq!(result.segments.len(), 1, "{line}");
    }
}

const DAEMON: &str = "wincimg build . --docker-host tcp://HOST:2376";

#[test]
fn a_hint_ends_with_the_daemon_that_runs_the_line() {
    for (line, hint) in [
        (
            "x.exe one",
            "use COPY, ENV or the keys of a recipe instead, or let Windows run the line: ",
        ),
        (
            "winget install one",
            "download and unpack a zip of the program, or let Windows run the line: ",
        ),
    ] {
        let text = format!("FROM {BASE}\nRUN {line}\n");
        let error = read(&text, &[]).check(false).unwrap_err();
        let flag = format!("{hint}--docker-host tcp://HOST:2375");
        assert_eq!(error.diagnosis().hint, Some(flag));
        let command = format!("{hint}{DAEMON}");
        assert_eq!(error.hint_with_daemon(DAEMON), Some(command));
    }
}

#[test]
fn what_follows_a_segment_is_on_its_result() {
    let text = format!(
        "FROM {BASE} AS build\nRUN one.exe\nFROM {BASE}\nCOPY --from=build C:/made.txt C:/made.txt\n"
    );
    let stages = read(&text, &[]);
    let mut inputs = inputs(&stages);
    let result = stages.evaluate(&inputs).unwrap();
    assert!(result.lacking.is_empty());
    assert_eq!(result.unclear.len(), 1);
    let id = result.segments[0].id;
    let base = inputs.bases[BASE].clone();
    inputs
        .bases
        .insert("repo.lan/made@sha256:1".to_owned(), base);
    let windows = inputs.windows.as_mut().unwrap();
    windows
        .results
        .insert(id, "repo.lan/made@sha256:1".to_owned());
    let result = stages.evaluate(&inputs).unwrap();
    assert!(result.segments.is_empty() && result.unclear.is_empty());
    assert_eq!(
        result.lacking,
        [(
            "repo.lan/made@sha256:1".to_owned(),
            ["made.txt".to_owned()].into()
        )]
        .into()
    );
    assert_eq!(result.base, BASE);
}

#[test]
fn a_copy_that_waits_for_windows_leaves_only_its_target_open() {
    let text = format!(
        "FROM {BASE}\nRUN one.exe\nCOPY a.txt C:/etc/x\nRUN del C:\\etc\\a.txt\n\
         RUN mkdir C:\\new\n"
    );
    let result = evaluated(&text);
    assert_eq!(result.unclear.len(), 1);
    let found: Vec<_> = result.segments.iter().map(lines).collect();
    assert_eq!(found, [vec![2], vec![4, 5]]);
}

#[test]
fn a_daemon_gets_pinned_bases_and_images_to_copy_from() {
    let text = |base: &str, other: &str, short: &str| {
        format!(
            "FROM {base} AS servercore\nFROM {base}\nCOPY --from=servercore /a C:/a\n\
             COPY --link \\\n  --from=\"{other}\" /b C:/b\nCOPY --from=repo.lan/c /c C:/c\n\
             COPY --from={short} /m C:/m\n"
        )
    };
    let other = "repo.lan/servercore:ltsc2022";
    let stages = read(&text(BASE, other, "from"), &[]);
    let copied: Vec<_> = stages.copied_images().collect();
    assert_eq!(copied, [(4, other), (6, "repo.lan/c"), (7, "from")]);
    let images = [
        (BASE, "one@sha256:1"),
        ("servercore", "no"),
        (other, "two"),
        ("from", "three"),
    ];
    let images = images.map(|(name, pinned)| (name.to_owned(), pinned.to_owned()));
    let sent = stages.for_daemon(&images.into(), &BTreeMap::new());
    assert_eq!(
        sent.unwrap().dockerfile,
        text("one@sha256:1", "two", "three")
    );
}

#[test]
fn a_daemon_builds_nothing_in_stages_that_the_image_does_not_need() {
    let text = format!(
        "FROM alpine:3 AS linux\nRUN make \\\n  all\nFROM {BASE}\nCOPY a.txt C:/\n\n\
         FROM linux AS test\nRUN <<EOF\nx\nEOF\nFROM {BASE}\nCOPY --from=1 /a.txt C:/\n"
    );
    let images = BTreeMap::from([(BASE.to_owned(), "one@sha256:1".to_owned())]);
    let sent = read(&text, &[]).for_daemon(&images, &BTreeMap::new());
    assert_eq!(
        sent.unwrap().dockerfile,
        "FROM one@sha256:1 AS linux\n\n\nFROM one@sha256:1\nCOPY a.txt C:/\n\n\
         FROM one@sha256:1 AS test\n\n\n\nFROM one@sha256:1\nCOPY --from=1 /a.txt C:/\n"
    );
}

#[test]
fn steps_on_the_result_of_others_need_no_image_in_between() {
    for (setting, is_made) in [("", false), ("ENV A=1\n", true), ("ARG GIVEN\n", true)] {
        let result = evaluated(&format!(
            "FROM {BASE} AS one\nRUN one.exe\nFROM one\n{setting}RUN two.exe\n"
        ));
        let [first, second] = result.segments.as_slice() else {
            panic!("{:?}", result.segments);
        };
        assert!(first.below.is_none());
        assert_eq!(second.below.is_some(), is_made, "{setting}");
        assert_eq!(second.steps.len(), 1);
    }
}

#[test]
fn a_batch_file_may_be_run_without_its_extension() {
    let text = format!("FROM {BASE}\nCOPY a.txt C:/Setup.bat\nRUN setup\nRUN build /x\n");
    let stages = read(&text, &[]);
    assert_eq!(failed_lines(&stages.check(false).unwrap_err()), [4]);
    fs::write(stages.request.context.join("build.cmd"), "").unwrap();
    stages.check(false).unwrap();
}

#[test]
fn several_files_are_copied_into_a_folder_that_exists() {
    for (before, target, is_there) in [
        ("WORKDIR C:/x", "C:/X", true),
        ("COPY a.txt C:/x/y/a.txt", "/x", true),
        ("ENV A=1", "C:/x", false),
    ] {
        let text = format!("FROM {BASE}\n{before}\nCOPY a.txt Dockerfile {target}\n");
        let stages = read(&text, &[]);
        let result = stages.evaluate(&inputs(&stages));
        assert_eq!(result.is_ok(), is_there, "{before}");
        let Ok(result) = result else { continue };
        assert!(result.notes.iter().any(|note| note.contains("BuildKit")));
        let layers = result.instructions.layers();
        let paths = layers.flat_map(|layer| &layer.entries);
        let paths: Vec<String> = paths.map(|it| it.path.to_string()).collect();
        for name in ["a.txt", "Dockerfile"] {
            let is_copied = |path: &String| path.eq_ignore_ascii_case(&format!(r"C:\x\{name}"));
            assert!(paths.iter().any(is_copied), "{before}: {paths:?}");
        }
    }
}

#[test]
fn an_installer_that_is_known_only_with_its_file_does_not_hide_behind_other_lines() {
    for (run, checked) in [
        (r"C:\app\setup.exe", true),
        (r"C:\app\setup.exe /quiet", false),
    ] {
        let text = format!("FROM {BASE}\nRUN {run}\nRUN three.exe\n");
        let stages = read(&text, &[]);
        let without_windows = Inputs {
            windows: None,
            ..inputs(&stages)
        };
        let found = stages.check(false);
        assert_eq!(found.is_err(), checked, "{run}");
        let found = found.and_then(|()| stages.evaluate(&without_windows).map(|_| ()));
        assert_eq!(failed_lines(&found.unwrap_err()), [2, 3], "{run}");
    }
}

#[test]
fn the_whole_drive_of_what_windows_made_is_refused_in_the_plan() {
    for (source, is_refused) in [("/*.dll", true), ("/", true), ("/d/*.dll", false)] {
        let text = format!(
            "FROM {BASE} AS one\nRUN one.exe\nFROM {BASE}\nCOPY --from=one {source} C:/y/\n"
        );
        let stages = read(&text, &[]);
        let result = stages.evaluate_without_contents(&inputs(&stages));
        let lines = result.err().map(|error| failed_lines(&error));
        assert_eq!(lines, is_refused.then(|| vec![4]), "{source}");
    }
}

#[test]
fn what_the_context_lacks_is_missing_whatever_earlier_lines_do() {
    for run in [
        "one.exe",
        "curl -Lo C:\\a.exe https://example.com/a.exe && C:\\a.exe /quiet",
    ] {
        for copy in [
            "COPY none.txt C:/x/",
            "ADD none*.txt C:/x/",
            "COPY a.txt none.txt C:/x",
        ] {
            let stages = read(&format!("FROM {BASE}\nRUN {run}\n{copy}\n"), &[]);
            let error = stages.evaluate(&inputs(&stages)).unwrap_err();
            assert_eq!(failed_lines(&error), [3], "{run}, {copy}");
        }
        // Whether this is a folder is known after the line.
        let copy = "COPY a.txt C:/inetpub/x";
        let stages = read(&format!("FROM {BASE}\nRUN {run}\n{copy}\n"), &[]);
        stages.evaluate(&inputs(&stages)).unwrap();
    }
}

#[test]
fn downloads_without_a_digest_are_for_windows_and_failures_are_not() {
    let text = format!("FROM {BASE}\nRUN curl -o C:\\a.exe https://example.com/a.exe\n");
    let stages = read(&text, &[]);
    let mut inputs = inputs(&stages);
    let result = stages.evaluate(&inputs).unwrap();
    assert!(result.segments.is_empty());
    let url = result.wants.keys().next().unwrap().clone();
    inputs.windows.as_mut().unwrap().not_pinned.insert(url);
    let result = stages.evaluate(&inputs).unwrap();
    assert_eq!(lines(&result.segments[0]), [2]);
    assert!(result.wants.is_empty());

    // A daemon has no context for other sources, and knows few flags.
    let url = "https://example.com/a.zip";
    for (add, is_sent) in [
        (format!("{url} C:/a.zip"), true),
        (format!("{url} a.txt C:/x/"), false),
        (format!("--link {url} C:/a.zip"), false),
    ] {
        let stages = read(
            &format!("FROM {BASE}\nENV A=1\nADD {add}\nRUN x.exe\n"),
            &[],
        );
        let mut inputs = self::inputs(&stages);
        let windows = inputs.windows.as_mut().unwrap();
        windows.not_pinned.insert(url.to_owned());
        let result = stages.evaluate(&inputs).unwrap();
        let expected = if is_sent { vec![2, 3, 4] } else { vec![4] };
        assert_eq!(lines(&result.segments[0]), expected, "{add}");
        assert_eq!(result.segments[0].has_downloads(), is_sent, "{add}");
        assert_eq!(result.wants.is_empty(), is_sent, "{add}");
    }

    let stages = read(&format!("FROM {BASE}\nRUN type C:\\none\\x.txt\n"), &[]);
    let error = stages.evaluate(&self::inputs(&stages)).unwrap_err();
    assert_eq!(
        error.failed_lines().next().unwrap().code,
        "dockerfile/fails"
    );
}

#[test]
fn lines_with_a_flag_of_buildkit_are_neither_evaluated_nor_sent_to_a_daemon() {
    let text = format!(
        "FROM {BASE}\nRUN --mount=type=secret,id=t,env=T if defined T (echo y>C:\\y.txt) else (echo n>C:\\n.txt)\n\
         RUN two.exe\nRUN --mount=type=bind,source=a.txt,target=C:/t \\\n  C:\\t\\setup.exe\n"
    );
    let stages = read(&text, &[]);
    let without_windows = stages.check(false).unwrap_err();
    stages.check(true).unwrap();
    let evaluated = stages.evaluate(&inputs(&stages)).unwrap_err();
    let sent = stages.check_for_daemon().unwrap_err();
    for (error, expected) in [
        (without_windows, &[2, 3, 5][..]),
        (evaluated, &[2, 5]),
        (sent, &[2, 5]),
    ] {
        assert_eq!(failed_lines(&error), expected);
        let lines: Vec<_> = error.failed_lines().collect();
        assert!(lines.iter().all(|it| it.code == "dockerfile/needs-windows"));
        let message = "RUN requires Windows: only BuildKit supports --mount";
        assert_eq!(lines[0].message, message);
        assert_eq!(
            lines[0].hint.as_deref(),
            Some("do what needs the secret before the build, and COPY only its result")
        );
        assert_eq!(
            lines[lines.len() - 1].hint.as_deref(),
            Some("omit the flag, and COPY what it mounts")
        );
        assert_eq!(error.diagnosis().blame, Blame::Windows);
    }
    let mut inputs = inputs(&stages);
    inputs.windows.as_mut().unwrap().has_documents = true;
    let error = stages.evaluate(&inputs).unwrap_err();
    assert_eq!(failed_lines(&error), [2, 5]);
    let mut lines = error.failed_lines();
    assert!(lines.all(|it| it.code == "dockerfile/refused"));
    assert_eq!(error.diagnosis().blame, Blame::Request);
    let text = format!("FROM {BASE}\nRUN --network=none --mount=type=cache,target=C:/c x.exe\n");
    let error = read(&text, &[]).check(false).unwrap_err();
    assert_eq!(error.diagnosis().hint.as_deref(), Some("omit the flag"));
    let text = "FROM alpine:3\nRUN --mount=type=cache,target=/root make\n";
    let error = read(text, &[]).check(false).unwrap_err();
    let codes: Vec<_> = error.failed_lines().map(|it| it.code).collect();
    assert_eq!(codes, ["dockerfile/needs-linux"]);
}

#[test]
fn a_here_document_for_windows_is_sent_only_to_buildkit() {
    let text = format!("FROM {BASE}\nRUN <<EOF\nmkdir C:\\x\nEOF\nRUN <<EOF\nx.exe one\nEOF\n");
    let stages = read(&text, &[]);
    stages.check(true).unwrap();
    let mut inputs = inputs(&stages);
    let evaluated = stages.evaluate(&inputs).unwrap_err();
    let sent = stages.check_for_daemon().unwrap_err();
    for (error, expected) in [(evaluated, &[5][..]), (sent, &[2, 5])] {
        assert_eq!(failed_lines(&error), expected);
        let lines: Vec<_> = error.failed_lines().collect();
        assert!(lines.iter().all(|it| it.code == "dockerfile/needs-windows"));
        assert_eq!(lines[0].hint.as_deref(), Some(run::AS_ONE_LINE));
    }
    // Not the address of a daemon, which would refuse it.
    let alone = stages.check(false).unwrap_err();
    let mut hints = alone.failed_lines().map(|it| it.hint);
    assert_eq!(hints.next().flatten().as_deref(), Some(run::AS_ONE_LINE));
    inputs.windows.as_mut().unwrap().has_documents = true;
    let result = stages.evaluate(&inputs).unwrap();
    assert_eq!(lines(&result.segments[0]), [5]);
}

#[test]
fn what_a_daemon_ignores_in_copies_is_not_sent_to_it() {
    let digest = "0".repeat(64);
    let text = format!(
        "FROM {BASE}\nCOPY --link a.txt C:/a/\nADD --checksum=sha256:{digest} https://a.lan/a.zip C:/\n\
         COPY --exclude=*.pdb a.txt C:/b/\nCOPY <<a.txt C:/c/\nx\na.txt\nADD a.txt C:/d/\n"
    );
    let error = read(&text, &[]).check_for_daemon().unwrap_err();
    assert_eq!(failed_lines(&error), [3, 4, 5]);
    let lines = error.failed_lines();
    let messages: Vec<_> = lines.map(|it| (it.message, it.hint)).collect();
    let expected = [
        "--checksum: a Docker daemon ignores it",
        "--exclude: a Docker daemon ignores it",
        "here-documents: a Docker daemon takes them for names of files",
    ];
    for (what, (message, hint)) in expected.iter().zip(&messages) {
        assert!(
            message.contains(&format!("only BuildKit supports {what}")),
            "{message}"
        );
        assert_eq!(hint.as_deref(), Some("omit --engine docker"));
    }
}

#[test]
fn an_image_replaces_a_stage_that_others_are_based_on() {
    let text =
        format!("FROM {BASE} AS one\nRUN one.exe\nFROM one\nCOPY --from=one C:/x.txt C:/y.txt\n");
    let stages = read(&text, &[("one", "repo.lan/one:1")]);
    assert_eq!(stages.bases(), ["repo.lan/one:1"]);
    let result = stages.evaluate(&inputs(&stages)).unwrap();
    assert!(result.segments.is_empty());
    assert_eq!(
        result.lacking.keys().collect::<Vec<_>>(),
        ["repo.lan/one:1"]
    );
    assert!(stages.check_for_daemon().is_err());
}

#[test]
fn a_reference_has_a_registry_and_everything_else_is_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("out.d/x")).unwrap();
    for (text, is_image) in [
        ("repo.lan/one:1", true),
        ("localhost:5000/one", true),
        ("localhost/one", true),
        ("out", false),
        ("./out", false),
        ("../a.b/out", false),
        ("/repo.lan/one", false),
        ("out.d/x", false),
        (r"C:\out/x", false),
        ("out/one.d", false),
        ("oci:out", true),
        ("docker-archive:out.tar:one:1", true),
    ] {
        let replacement = StageReplacement::parse(text, folder.path());
        assert_eq!(
            matches!(replacement, StageReplacement::Image(_)),
            is_image,
            "{text}"
        );
    }
}

proptest! {
    /// Each step runs once, in its place; segments are as long as they can be.
    #[test]
    fn every_step_has_one_place(kinds in proptest::collection::vec(0..4_u8, 0..12)) {
        let mut text = format!("FROM {BASE}\n");
        let mut expected: Vec<Vec<usize>> = Vec::new();
        let (mut open, mut settings, mut is_first) = (false, Vec::new(), true);
        for (index, kind) in kinds.iter().enumerate() {
            let line = index + 2;
            text += match kind {
                0 => "RUN x.exe\n",
                1 => "ENV A=1\n",
                2 => "COPY a.txt C:/a.txt\n",
                _ => "RUN setx /M A b\n",
            };
            match kind {
                0 => {
                    if !open {
                        expected.push(if is_first { settings.clone() } else { Vec::new() });
                    } else if let Some(last) = expected.last_mut() {
                        last.append(&mut settings);
                    }
                    expected.last_mut().unwrap().push(line);
                    settings.clear();
                    (open, is_first) = (true, false);
                }
                1 => settings.push(line),
                _ => {
                    settings.clear();
                    (open, is_first) = (false, false);
                }
            }
        }
        let result = evaluated(&text);
        let found: Vec<Vec<usize>> = result.segments.iter().map(lines).collect();
        prop_assert_eq!(&found, &expected);
        let placed: Vec<(usize, bool)> = result
            .placements
            .iter()
            .map(|step| (step.line, step.engine == StepEngine::Windows))
            .collect();
        let is_sent = |line: usize| found.iter().flatten().any(|sent| *sent == line);
        let all = (2..kinds.len() + 2).map(|line| (line, is_sent(line)));
        prop_assert_eq!(placed, all.collect::<Vec<_>>());
    }
}
