use wincimg_windows::compat::{ContainerRuntime, HostBuild};

use super::*;

/// A node with the labels of AKS.
fn node() -> Node {
    let labels = [
        ("kubernetes.io/os", "windows"),
        ("node.kubernetes.io/windows-build", "10.0.20348"),
        ("agentpool", "win22"),
        ("cores", "8"),
    ];
    Node {
        name: Some("akswin22000000".to_owned()),
        build: Some(HostBuild::new("20348.2402".parse().unwrap())),
        runtime: ContainerRuntime::CONTAINERD,
        kubelet: String::new(),
        architecture: "amd64".to_owned(),
        labels: labels
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        labels_are_complete: true,
        taints: Vec::new(),
        is_cordoned: false,
    }
}

fn with_selector(key: &str, value: &str) -> Scheduling {
    Scheduling {
        selector: [(key.to_owned(), value.to_owned())].into(),
        ..Scheduling::default()
    }
}

fn with_affinity(terms: &str) -> Scheduling {
    Scheduling {
        affinity: Some(serde_json::from_str(terms).unwrap()),
        ..Scheduling::default()
    }
}

fn with_tolerations(tolerations: &str) -> Scheduling {
    Scheduling {
        tolerations: serde_json::from_str(tolerations).unwrap(),
        ..Scheduling::default()
    }
}

fn tainted(taint: &str) -> Node {
    Node {
        taints: vec![serde_json::from_str(taint).unwrap()],
        ..node()
    }
}

#[test]
fn a_selector_wants_every_label() {
    assert!(with_selector("agentpool", "win22").admits(&node()));
    assert!(!with_selector("agentpool", "win19").admits(&node()));
    assert!(!with_selector("nowhere", "win22").admits(&node()));
    assert!(Scheduling::default().admits(&node()));
}

#[test]
fn every_operator_of_node_affinity_means_what_kubernetes_says() {
    let admits = |key: &str, operator: &str, values: &str| {
        with_affinity(&format!(
            r#"[{{"matchExpressions":[{{"key":"{key}","operator":"{operator}","values":{values}}}]}}]"#
        ))
        .admits(&node())
    };
    for (key, operator, values, expected) in [
        ("agentpool", "In", r#"["x","win22"]"#, true),
        ("agentpool", "In", r#"["x"]"#, false),
        ("gpu", "In", r#"["x"]"#, false),
        ("agentpool", "NotIn", r#"["x"]"#, true),
        ("agentpool", "NotIn", r#"["win22"]"#, false),
        ("gpu", "NotIn", r#"["x"]"#, true),
        ("agentpool", "Exists", "null", true),
        ("gpu", "Exists", "[]", false),
        ("agentpool", "DoesNotExist", "[]", false),
        ("gpu", "DoesNotExist", "[]", true),
        ("cores", "Gt", r#"["4"]"#, true),
        ("cores", "Gt", r#"["8"]"#, false),
        ("cores", "Gt", r#"["-4"]"#, false),
        ("cores", "Lt", r#"["16"]"#, true),
        ("cores", "Lt", r#"["8"]"#, false),
        ("agentpool", "Gt", r#"["4"]"#, false),
        ("gpu", "Lt", r#"["4"]"#, false),
        ("cores", "Gt", r#"["1","2"]"#, false),
    ] {
        assert_eq!(
            admits(key, operator, values),
            expected,
            "{key} {operator} {values}"
        );
    }
}

#[test]
fn one_term_is_enough_and_an_empty_one_is_none() {
    let wrong = r#"{"matchExpressions":[{"key":"agentpool","operator":"In","values":["x"]}]}"#;
    let right =
        r#"{"matchFields":[{"key":"metadata.name","operator":"In","values":["akswin22000000"]}]}"#;
    assert!(with_affinity(&format!("[{wrong},{right}]")).admits(&node()));
    assert!(!with_affinity(&format!("[{wrong}]")).admits(&node()));
    assert!(!with_affinity("[{}]").admits(&node()));
    assert!(!with_affinity("[]").admits(&node()));
}

#[test]
fn all_requirements_of_a_term_hold_at_once_and_with_the_selector() {
    let pool = r#"{"key":"agentpool","operator":"In","values":["win22"]}"#;
    let many = r#"{"key":"cores","operator":"Gt","values":["16"]}"#;
    let some = r#"{"key":"cores","operator":"Gt","values":["4"]}"#;
    let not_this = r#"{"key":"metadata.name","operator":"NotIn","values":["akswin22000000"]}"#;
    let term = |labels: &str, fields: &str| {
        format!(r#"[{{"matchExpressions":[{labels}],"matchFields":[{fields}]}}]"#)
    };
    assert!(with_affinity(&term(&format!("{pool},{some}"), "")).admits(&node()));
    assert!(!with_affinity(&term(&format!("{pool},{many}"), "")).admits(&node()));
    assert!(!with_affinity(&term(pool, not_this)).admits(&node()));
    let both = Scheduling {
        affinity: with_affinity(&term(pool, "")).affinity,
        ..with_selector("agentpool", "win19")
    };
    assert!(!both.admits(&node()));
}

#[test]
fn a_taint_keeps_off_what_does_not_tolerate_it() {
    let windows = tainted(r#"{"key":"os","value":"windows","effect":"NoSchedule"}"#);
    let is_admitted = |toleration: &str| {
        let tolerations = format!("[{toleration}]");
        with_tolerations(&tolerations).admits(&windows)
    };
    for toleration in [
        r#"{"key":"os","operator":"Equal","value":"windows","effect":"NoSchedule"}"#,
        r#"{"key":"os","value":"windows"}"#,
        r#"{"key":"os","operator":"Exists"}"#,
        r#"{"operator":"Exists"}"#,
        r#"{"operator":"Exists","effect":"NoSchedule","tolerationSeconds":null}"#,
        // Driven off after a while, it lands all the same.
        r#"{"key":"os","operator":"Exists","tolerationSeconds":60}"#,
    ] {
        assert!(is_admitted(toleration), "{toleration}");
    }
    for toleration in [
        "",
        r#"{"key":"os","value":"linux"}"#,
        r#"{"key":"os","value":"windows","effect":"NoExecute"}"#,
        r#"{"key":"system","operator":"Exists"}"#,
        r#"{"operator":"Exists","effect":"NoExecute","tolerationSeconds":300}"#,
    ] {
        assert!(!is_admitted(toleration), "{toleration}");
    }
}

#[test]
fn every_taint_has_to_be_tolerated() {
    let mut node = tainted(r#"{"key":"os","value":"windows","effect":"NoSchedule"}"#);
    node.taints
        .push(serde_json::from_str(r#"{"key":"gpu","effect":"NoExecute"}"#).unwrap());
    let os = r#"{"key":"os","operator":"Exists"}"#;
    let gpu = r#"{"key":"gpu","operator":"Exists"}"#;
    assert!(!with_tolerations(&format!("[{os}]")).admits(&node));
    assert!(with_tolerations(&format!("[{os},{gpu}]")).admits(&node));
}

#[test]
fn numeric_tolerations_hold_the_taints_number_against_theirs() {
    let tolerates = |operator: &str, number: &str, taint: &str| {
        let taint = format!(r#"{{"key":"sla","value":"{taint}","effect":"NoSchedule"}}"#);
        with_tolerations(&format!(
            r#"[{{"key":"sla","operator":"{operator}","value":"{number}"}}]"#
        ))
        .admits(&tainted(&taint))
    };
    assert!(tolerates("Gt", "900", "950"));
    assert!(!tolerates("Lt", "900", "950"));
    assert!(!tolerates("Gt", "900", "0950"));
    assert!(!tolerates("Gt", "0900", "950"));
}

#[test]
fn preferences_and_passing_conditions_keep_nothing_off() {
    for taint in [
        r#"{"key":"os","value":"windows","effect":"PreferNoSchedule"}"#,
        r#"{"key":"node.kubernetes.io/unschedulable","effect":"NoSchedule"}"#,
        r#"{"key":"node.kubernetes.io/not-ready","effect":"NoExecute"}"#,
        r#"{"key":"ebs.csi.aws.com/agent-not-ready","effect":"NoExecute"}"#,
        r#"{"key":"startup-taint.cluster-autoscaler.kubernetes.io/x","effect":"NoSchedule"}"#,
        r#"{"key":"karpenter.sh/unregistered","effect":"NoExecute"}"#,
        r#"{"key":"karpenter.sh/disrupted","effect":"NoSchedule"}"#,
        r#"{"key":"karpenter.sh/disruption","value":"disrupting","effect":"NoSchedule"}"#,
        r#"{"key":"cloud.google.com/impending-node-termination","effect":"NoSchedule"}"#,
        r#"{"key":"aws-node-termination-handler/spot-itn","effect":"NoSchedule"}"#,
    ] {
        assert!(Scheduling::default().admits(&tainted(taint)), "{taint}");
    }
}

#[test]
fn gke_adds_the_toleration_of_windows_to_pods_that_select_it() {
    let mut node =
        tainted(r#"{"key":"node.kubernetes.io/os","value":"windows","effect":"NoSchedule"}"#);
    let windows = with_selector("kubernetes.io/os", "windows");
    assert!(!windows.admits(&node), "not a node of GKE");
    let pool = ("cloud.google.com/gke-nodepool", "win22");
    node.labels.insert(pool.0.to_owned(), pool.1.to_owned());
    assert!(windows.admits(&node));
    assert!(!Scheduling::default().admits(&node));
    assert!(!with_selector(pool.0, pool.1).admits(&node));
    let gpu = r#"{"key":"nvidia.com/gpu","value":"present","effect":"NoSchedule"}"#;
    node.taints.push(serde_json::from_str(gpu).unwrap());
    assert!(!windows.admits(&node));
}

#[test]
fn a_pod_that_names_its_node_goes_past_the_scheduler_and_not_past_the_kubelet() {
    let named = |name: &str, scheduling: Scheduling| Scheduling {
        node_name: Some(name.to_owned()),
        ..scheduling
    };
    let own = |scheduling| named("akswin22000000", scheduling);
    assert!(own(Scheduling::default()).admits(&node()));
    assert!(!named("another", Scheduling::default()).admits(&node()));
    assert!(!own(with_selector("nowhere", "x")).admits(&node()));
    let taint = |effect: &str| tainted(&format!(r#"{{"key":"gpu","effect":"{effect}"}}"#));
    assert!(own(Scheduling::default()).admits(&taint("NoSchedule")));
    assert!(!own(Scheduling::default()).admits(&taint("NoExecute")));
}

#[test]
fn of_a_bare_build_only_the_build_is_held_against_a_pod() {
    let host = Node::from_build(HostBuild::new("17763.973".parse().unwrap()));
    assert!(with_selector("agentpool", "any").admits(&host));
    assert!(with_selector("kubernetes.io/os", "windows").admits(&host));
    assert!(!with_selector("node.kubernetes.io/windows-build", "10.0.20348").admits(&host));
    let affinity =
        r#"[{"matchExpressions":[{"key":"KEY","operator":"In","values":["10.0.20348"]}]}]"#;
    assert!(with_affinity(&affinity.replace("KEY", "pool")).admits(&host));
    let build = affinity.replace("KEY", "node.kubernetes.io/windows-build");
    assert!(!with_affinity(&build).admits(&host));
}

#[test]
fn the_system_is_read_from_selector_or_affinity() {
    for (key, value, expected) in [
        ("kubernetes.io/os", "windows", System::Windows),
        ("beta.kubernetes.io/os", "linux", System::Other),
        (BUILD_LABEL, "10.0.17763", System::Windows),
        ("agentpool", "win", System::Unsaid),
        // Misspelt, so it lands on no node.
        ("kubernetes.io/os", "Windows", System::Windows),
        ("kubernetes.io/os", "win", System::Unsaid),
    ] {
        let found = with_selector(key, value).system();
        assert_eq!(found, expected, "{key}={value}");
    }
    let os = |operator: &str, values: &str| {
        let term = format!(
            r#"{{"matchExpressions":[{{"key":"kubernetes.io/os","operator":"{operator}","values":{values}}}]}}"#
        );
        (with_affinity(&format!("[{term}]")).system(), term)
    };
    let (windows, windows_term) = os("In", r#"["windows"]"#);
    let (other, other_term) = os("NotIn", r#"["windows"]"#);
    assert_eq!(windows, System::Windows);
    assert_eq!(other, System::Other);
    assert_eq!(os("In", r#"["linux"]"#).0, System::Other);
    assert_eq!(os("In", r#"["linux","windows"]"#).0, System::Unsaid);
    assert_eq!(
        with_affinity(&format!("[{windows_term},{other_term}]")).system(),
        System::Unsaid
    );
}

#[test]
fn a_term_that_no_node_meets_meets_none_once_more_is_asked() {
    let requirement = Requirement {
        key: "agentpool".to_owned(),
        operator: Operator::Exists,
        values: Vec::new(),
    };
    for terms in ["[]", "[{}]"] {
        let mut scheduling = with_affinity(terms);
        assert!(!scheduling.admits(&node()), "{terms}");
        scheduling.require_all(&requirement);
        assert!(!scheduling.admits(&node()), "{terms}");
    }
    let mut scheduling = Scheduling::default();
    scheduling.require_all(&requirement);
    assert!(scheduling.admits(&node()));
    assert!(!scheduling.admits(&Node {
        labels: BTreeMap::new(),
        ..node()
    }));
}
