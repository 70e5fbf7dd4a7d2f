//! Commands of a plan, and what they do to images and tags.

use super::*;

#[test]
fn an_archive_becomes_a_layout_where_hosts_need_several_images() {
    let mut request = request(&["17763.1158", "20348.1"], &["17763.1158"]);
    request.images[0].reference = Some("docker-archive:web.tar".to_owned());
    let commands = plan(&request).actions[0].commands().to_vec();
    let build =
        "wincimg build RECIPE --host-build 17763.1158 --host-build 20348.1 --output oci:web";
    assert_eq!(commands, [build]);
}

#[test]
fn a_reference_by_digest_gets_the_new_one() {
    let digest = format!("repo.example/i0@sha256:{}", "1".repeat(64));
    let mut request = request(&["20348.1"], &["17763.1158"]);
    request.images[0].reference = Some(digest.clone());
    let mut rollout = Rollout::new(&request);
    let plan = rollout.advise(&request, &TagsByRepository::new());
    let rest = "and update the references to its digest";
    let title = plan.actions[0].title(&rollout);
    assert_eq!(title, format!("build {digest} (17763.1158) again, {rest}"));
    let fix = rollout
        .checks()
        .next()
        .unwrap()
        .finding
        .fix
        .clone()
        .unwrap();
    assert!(fix.contains(rest), "{fix}");
}

#[test]
fn an_image_on_disk_is_rebuilt_there_and_not_pushed() {
    let mut request = request(&["17763.1158"], &["17763.973", "17763.973", "17763.973"]);
    let places = [
        "oci:./my images:1.4",
        "oci:web",
        "docker-archive:web.tar:web:1",
    ];
    for (image, place) in request.images.iter_mut().zip(places) {
        image.reference = Some(place.to_owned());
    }
    let plan = plan(&request);
    let commands: Vec<String> = plan
        .actions
        .iter()
        .flat_map(PlanAction::commands)
        .cloned()
        .collect();
    assert_eq!(
        commands,
        [
            "wincimg build RECIPE --host-build 17763.1158 --output 'oci:./my images' --tag 1.4 --replace",
            "wincimg build RECIPE --host-build 17763.1158 --output oci:web --replace",
            "wincimg build RECIPE --host-build 17763.1158 --output docker-archive:web.tar",
        ]
    );
}

#[test]
fn commands_are_ready_to_type() {
    let mut request = request(&["17763.973", "17763.1158"], &["17763.1158", "20348.1"]);
    request.flags = CommandFlags {
        registry: vec!["--insecure-registry".to_owned(), "repo.example".to_owned()],
        kubectl: vec!["--context".to_owned(), "my cluster".to_owned()],
    };
    let plan = plan(&request);
    let commands: Vec<&[String]> = plan.actions.iter().map(PlanAction::commands).collect();
    assert_eq!(
        commands[0],
        [
            "wincimg build RECIPE --host-build 17763.1158 --host-build 20348.1 --registry \
             repo.example --name i1 --tag 1 --push --insecure-registry repo.example"
        ]
    );
    assert_eq!(
        commands[1],
        [
            "wincimg node hotfix script 17763.1158 --output KB4549949.ps1",
            "kubectl drain n0 --ignore-daemonsets --context 'my cluster'",
        ]
    );
}

#[test]
fn an_image_named_by_its_digest_gets_a_tag_that_the_reader_chooses() {
    let mut request = request(&["17763.1158"], &["17763.973"]);
    let digest = "0".repeat(64);
    request.images[0].reference = Some(format!("repo.example/web@sha256:{digest}"));
    let plan = plan(&request);
    assert_eq!(
        plan.actions[0].commands(),
        [
            "wincimg build RECIPE --host-build 17763.1158 --registry repo.example --name web --tag TAG \
             --push"
        ]
    );
}

#[test]
fn what_an_image_has_for_other_systems_is_kept() {
    let mut request = request(&["20348.1"], &["17763.1"]);
    let old = single("17763.973");
    request.images[0].content = ImageContent::Index(vec![linux(), single("17763.914"), old]);
    let plan = plan(&request);
    assert_eq!(
        plan.actions[0].commands(),
        [
            "wincimg build RECIPE --host-build 17763.973 --host-build 20348.1 --registry \
             repo.example --name i0 --tag 1 --push --join"
        ]
    );
}

#[test]
fn an_image_for_linux_is_never_built_over() {
    let mut request = restricted(&["20348.1"], &["20348.1"], &[]);
    request.images[0].content = ImageContent::Single(linux());
    request.plain = 1;
    assert!(plan(&request).actions.is_empty());
    let text = "kind: Deployment\nmetadata: {name: p0}\nspec: {template: {spec: {containers: \
                [{image: repo.example/i0:1}], nodeSelector: {kubernetes.io/os: windows}}}}\n";
    set_workloads(&mut request, text);
    assert!(plan(&request).actions.is_empty(), "no node runs Linux");
    request.nodes.others.push(linux_node());
    assert_eq!(short_of(&request), ["pin p0 to linux"]);
}

#[test]
fn a_cordoned_node_counts_as_before_and_stays_cordoned() {
    let mut request = request(&["17763.973", "17763.1158"], &["17763.1158"]);
    restrict(&mut request, &[("Deployment", vec![0], 0b11)]);
    assert_eq!(short_of(&request), ["patch n0 to 17763.1158"]);
    request.nodes.windows[1].is_cordoned = true;
    assert_eq!(short_of(&request), ["patch n0 to 17763.1158"]);
    request.nodes.windows[0].is_cordoned = true;
    let steps = plan(&request).actions[0].steps();
    let uncordon = |step: &ActionStep| format!("{step:?}").contains("uncordon");
    assert!(!steps.iter().any(uncordon), "{steps:?}");
}

#[test]
fn an_image_is_built_for_the_hosts_that_there_are() {
    let mut request = restricted(
        &["20348.2402", "26100.2894"],
        &["26100.3194"],
        &[("Deployment", vec![0], 0b1)],
    );
    assert_eq!(short_of(&request), ["build i0 for 20348.2402 26100.2894"]);
    // Hosts outside of the check may use an entry of another build.
    request.nodes.windows.pop();
    assert_eq!(short_of(&request), ["build i0 for 20348.2402 26100.3194"]);
}

#[test]
fn what_others_build_gets_another_tag_and_is_never_built() {
    let image = "mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver-ltsc2022";
    let mut request = request(&["17763.5696", "17763.5700"], &["20348.2402"]);
    restrict(&mut request, &[("Deployment", vec![0], 0b11)]);
    request.images[0].reference = Some(image.to_owned());
    image.clone_into(&mut request.workloads[0].template.containers[0].image);
    let tags: TagsByRepository = [(
        image.to_owned(),
        ["8.0-nanoserver-1809", "8.0-nanoserver-ltsc2022"]
            .map(str::to_owned)
            .into(),
    )]
    .into();
    let advised = |request: &RolloutRequest, tags: &TagsByRepository| {
        let mut rollout = Rollout::new(request);
        let plan = rollout.advise(request, tags);
        let finding = rollout.checks().next().unwrap().finding.clone();
        (plan.actions.len(), finding.fix.unwrap(), finding.commands)
    };
    let container = request.workloads[0].template.containers[0].name.clone();
    assert_eq!(
        advised(&request, &tags),
        (
            0,
            "use another tag of mcr.microsoft.com/dotnet/aspnet: 8.0-nanoserver-1809".to_owned(),
            vec![format!(
                "kubectl set image deployment/p0 {container}=mcr.microsoft.com/dotnet/aspnet:\
                 8.0-nanoserver-1809 --namespace default"
            )]
        )
    );
    let (_, fix, commands) = advised(&request, &TagsByRepository::new());
    assert!(fix.ends_with("one whose image fits these nodes"), "{fix}");
    assert!(commands.is_empty());
    // A mirror of Microsoft's bases gets the base of the nodes.
    let mut mirrored = request.clone();
    let image = "repo.lan:5000/mcr/windows/nanoserver:ltsc2022";
    mirrored.images[0].reference = Some(image.to_owned());
    image.clone_into(&mut mirrored.workloads[0].template.containers[0].image);
    let (actions, fix, commands) = advised(&mirrored, &TagsByRepository::new());
    assert_eq!(actions, 0, "{commands:?}");
    assert!(
        fix.contains("repo.lan:5000/mcr/windows/nanoserver"),
        "{fix}"
    );
    assert_eq!(
        commands,
        ["wincimg image mirror base:nanoserver --to repo.lan:5000/mcr --host-build 17763.5696"]
    );
    // An image of the user is rebuilt.
    request.own = vec!["mcr.microsoft.com/dotnet".to_owned()];
    let (actions, _, commands) = advised(&request, &tags);
    assert_eq!(actions, 1);
    assert!(commands[0].starts_with("wincimg build RECIPE"));
}

#[test]
fn a_new_image_reaches_nodes_that_have_the_old_one() {
    let day = Some("2026-11-24".parse().unwrap());
    let built = |kind: &'static str, change: &dyn Fn(&mut RolloutRequest)| {
        let mut request = request(&["18363.900"], &["17763.1158"]);
        restrict(&mut request, &[(kind, vec![0], 0b1)]);
        request.today = day;
        "c0".clone_into(&mut request.workloads[0].template.containers[0].name);
        change(&mut request);
        let plan = plan(&request);
        let title = plan.actions[0].title(&Rollout::new(&request));
        (plan.actions[0].commands().to_vec(), title)
    };
    let (commands, title) = built("Deployment", &|_| {});
    assert!(
        commands[0].contains(" --tag 1-20261124 --push"),
        "{commands:?}"
    );
    assert!(
        commands[0].ends_with("--push"),
        "nothing is under the tag: {commands:?}"
    );
    assert_eq!(
        commands[1..],
        ["kubectl set image deployment/p0 c0=repo.example/i0:1-20261124 --namespace default"]
    );
    assert!(title.contains("under the new tag 1-20261124"), "{title}");
    let (commands, _) = built("Deployment", &|request| {
        request.workloads[0].template.containers[0].pulls_always = true;
    });
    assert_eq!(
        commands[1..],
        ["kubectl rollout restart deployment/p0 --namespace default"]
    );
    assert!(commands[0].contains(" --tag 1 "), "{commands:?}");
    let (commands, title) = built("CloneSet", &|_| {});
    assert_eq!(commands.len(), 1);
    assert!(title.contains("until imagePullPolicy is Always"), "{title}");
    let (commands, _) = built("Deployment", &|request| {
        request.images[0].content = ImageContent::Index(vec![linux(), single("17763.914")]);
    });
    assert!(
        commands[0].ends_with("--tag 1 --push --join"),
        "{commands:?}"
    );
}
