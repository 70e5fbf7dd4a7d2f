//! Kinds that Kubernetes does not have.

use super::*;
use crate::scheduling::System;

#[test]
fn a_kind_of_another_group_is_another_kind() {
    let job = |api: &str| {
        format!(
            "---\napiVersion: {api}\nkind: Job\nmetadata: {{name: x}}\nspec: {{template: {{spec: \
             {{containers: [{{image: j}}]}}}}}}\n"
        )
    };
    let pod = |api: &str| {
        made(
            "x-1",
            &format!("{{apiVersion: {api}, kind: Job, name: x, controller: true}}"),
            "p",
        )
    };
    let ids = |text: String| {
        let workloads = read(&text).into_iter();
        workloads.map(|it| it.id.to_string()).collect::<Vec<_>>()
    };
    let (own, other) = ("Job default/x", "Job.batch.volcano.sh default/x");
    let volcano = "batch.volcano.sh/v1alpha1";
    assert_eq!(ids(job("batch/v1") + &job(volcano)), [own, other]);
    assert_eq!(ids(job("batch/v1") + &pod("batch/v1")), [own]);
    assert_eq!(ids(job("batch/v1") + &pod(volcano)), [own, other]);
    assert_eq!(ids(job(volcano) + &pod(volcano)), [other]);
    // Kubernetes' own kinds had other groups.
    let old = job("extensions/v1beta1");
    assert_eq!(ids(old + &pod("batch/v1")), [own]);
}

#[test]
fn pods_are_found_in_kinds_that_kubernetes_does_not_have() {
    for (text, images) in [
        (
            "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: x}\nspec:\n  \
             replicatedJobs:\n  - name: a\n    template: {spec: {template: {spec: {containers: \
             [{image: a}]}}}}\n  - name: b\n    template: {spec: {template: {spec: {containers: \
             [{image: b}, {image: c}]}}}}\n",
            vec![vec!["a"], vec!["b", "c"]],
        ),
        (
            "apiVersion: keda.sh/v1alpha1\nkind: ScaledJob\nmetadata: {name: x}\nspec:\n  \
             jobTargetRef: {template: {spec: {containers: [{image: a}]}}}\n",
            vec![vec!["a"]],
        ),
        (
            "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: x}\nspec:\n  \
             templates:\n  - {name: a, container: {image: a}}\n  - {name: b, script: {image: b}}\n  \
             - {name: c, steps: [[{name: d, template: a}]]}\n",
            vec![vec!["a"], vec!["b"]],
        ),
        (
            "apiVersion: actions.summerwind.dev/v1alpha1\nkind: RunnerDeployment\nmetadata: \
             {name: x}\nspec: {template: {spec: {repository: r, containers: [{name: runner, \
             image: a}]}}}\n",
            vec![vec!["a"]],
        ),
        (
            "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: x}\nspec:\n  \
             tasks: [{template: {spec: {containers: [{image: a}]}}}, {template: {spec: \
             {containers: [{image: a}]}}}]\n",
            // Duplicates are merged.
            vec![vec!["a"]],
        ),
    ] {
        let images: Vec<Vec<String>> = images
            .into_iter()
            .map(|images| images.into_iter().map(str::to_owned).collect())
            .collect();
        assert_eq!(found(text), (images, Vec::new()), "{text}");
    }
}

#[test]
fn a_workflows_step_runs_where_the_workflow_does() {
    let text = "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: x}\nspec:\n  \
                nodeSelector: {kubernetes.io/os: windows}\n  templates:\n  \
                - {name: a, container: {image: a}}\n  \
                - {name: b, container: {image: b}, nodeSelector: {kubernetes.io/os: linux}}\n";
    let systems: Vec<System> = read(text)
        .iter()
        .map(|workload| workload.template.system())
        .collect();
    assert_eq!(systems, [System::Windows, System::Other]);
}

#[test]
fn a_workflows_step_has_the_defaults_of_its_templates() {
    let selectors = |fields: &str, step: &str| {
        let text = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {{name: x}}\nspec:\n  \
             nodeSelector: {{pool: workflow}}\n{fields}  templates:\n  - {{name: a, {step}}}\n"
        );
        let workloads = read(&text).into_iter();
        let mut selectors = workloads.map(|workload| workload.template.scheduling.selector);
        let (first, rest) = (selectors.next().unwrap(), selectors.count());
        assert_eq!(rest, 0, "{text}");
        let words = first.iter().map(|(key, value)| format!("{key}={value}"));
        words.collect::<Vec<_>>().join(",")
    };
    let container = "container: {image: a}";
    let own = "container: {image: a}, nodeSelector: {zone: b}";
    let set = "containerSet: {containers: [{name: a, image: a}]}";
    let set_of_own = format!("{set}, nodeSelector: {{zone: b}}");
    let defaults = "  templateDefaults: {nodeSelector: {pool: defaults, zone: a}}\n";
    for (fields, step, expected) in [
        ("", container, "pool=workflow"),
        ("", own, "zone=b"),
        ("", set, "pool=workflow"),
        ("", set_of_own.as_str(), "zone=b"),
        (defaults, container, "pool=defaults,zone=a"),
        (defaults, own, "pool=defaults,zone=b"),
        (defaults, set, "pool=defaults,zone=a"),
    ] {
        assert_eq!(selectors(fields, step), expected, "{fields} {step}");
    }
}

#[test]
fn a_united_deployment_has_the_pods_of_each_subset() {
    let united = |subsets: &str| {
        let text = format!(
            "apiVersion: apps.kruise.io/v1alpha1\nkind: UnitedDeployment\nmetadata: {{name: u}}\nspec:\n  \
             template: {{deploymentTemplate: {{spec: {{template: {{spec: {{containers: [{{name: a, \
             image: a}}]}}}}}}}}}}\n  topology: {{subsets: {subsets}}}\n"
        );
        let workloads = read(&text).into_iter();
        let templates = workloads.map(|workload| workload.template);
        let words = templates.map(|it| (it.system(), it.scheduling.tolerations.len()));
        words.collect::<Vec<_>>()
    };
    let subset = |os: &str, more: &str| {
        format!(
            "{{nodeSelectorTerm: {{matchExpressions: [{{key: kubernetes.io/os, operator: In, values: \
             [{os}]}}]}}{more}}}"
        )
    };
    let both = format!(
        "[{}, {}]",
        subset("windows", ", tolerations: [{key: a, operator: Exists}]"),
        subset("linux", "")
    );
    let expected = [(System::Windows, 1), (System::Other, 0)];
    assert_eq!(united(&both), expected);
    for none in ["[]", "null", "[{name: a}]", "7"] {
        assert_eq!(united(none), [(System::Unsaid, 0)], "{none}");
    }
}

#[test]
fn containers_of_the_pods_of_others_make_none() {
    let policy = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  rules:\n  \
                  - {validate: {pattern: {spec: {containers: [{image: 'a.io/* | b.io/*'}]}}}}\n";
    let sidecar = "apiVersion: apps.kruise.io/v1alpha1\nkind: SidecarSet\nmetadata: {name: s}\nspec:\n  \
                   containers: [{name: s, image: s}]\n";
    let skipped = [
        "ClusterPolicy.kyverno.io default/p (app.yaml, line 1)",
        "SidecarSet.apps.kruise.io default/s (app.yaml, line 8)",
    ];
    let skipped = skipped.map(str::to_owned).to_vec();
    assert_eq!(
        found(&format!("{policy}---\n{sidecar}")),
        (Vec::new(), skipped)
    );
}

#[test]
fn what_makes_no_pods_is_skipped_and_said_where_its_kind_is_unknown() {
    let certificate = "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: web}\n\
                       spec: {containers: none}\n";
    let service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\n";
    let list = "---\napiVersion: v1\nkind: ConfigMapList\nitems: [{metadata: {name: web}}]\n";
    assert_eq!(
        found(&format!("{certificate}{service}{list}---\n{DEPLOYMENT}")),
        (
            vec![vec!["repo/setup:1".to_owned(), "repo/web:1.4".to_owned()]],
            vec!["Certificate.cert-manager.io default/web (app.yaml, line 1)".to_owned()]
        )
    );
}

#[test]
fn a_workload_whose_template_another_object_runs_is_active() {
    let rollout = |replicas: u32| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {{name: ro, namespace: shop}}\n\
             spec: {{replicas: {replicas}, workloadRef: {{kind: Deployment, name: web}}}}\n---\n"
        )
    };
    let deployment = DEPLOYMENT.replace("spec:\n  template", "spec:\n  replicas: 0\n  template");
    for (text, inactive, skipped) in [
        (rollout(2) + &deployment, 0, 0),
        (format!("{deployment}---\n{}", rollout(2)), 0, 0),
        (rollout(0) + &deployment, 1, 1),
        (deployment.clone(), 1, 0),
    ] {
        let mut list = listed(&text);
        assert_eq!(
            (list.remove_inactive(), list.skipped.len()),
            (inactive, skipped),
            "{text}"
        );
    }
}

#[test]
fn what_argo_and_keda_ended_suspended_or_paused_is_inactive() {
    let argo = |kind: &str, more: &str, spec: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: {kind}\nmetadata: {{name: x}}\n{more}\n\
             spec: {{{spec}templates: [{{name: a, container: {{image: a}}}}]}}\n"
        )
    };
    let scaled_job = |annotation: &str| {
        format!(
            "apiVersion: keda.sh/v1alpha1\nkind: ScaledJob\nmetadata: {{name: x, annotations: \
             {{autoscaling.keda.sh/paused: '{annotation}'}}}}\nspec: {{jobTargetRef: {{template: \
             {{spec: {{containers: [{{image: a}}]}}}}}}}}\n"
        )
    };
    for (text, inactive) in [
        (argo("Workflow", "status: {phase: Running}", ""), 0),
        (argo("Workflow", "status: {phase: Succeeded}", ""), 1),
        (argo("Workflow", "status: {phase: Failed}", ""), 1),
        (argo("Workflow", "status: {phase: Error}", ""), 1),
        (argo("CronWorkflow", "", "suspend: false, "), 0),
        (argo("CronWorkflow", "", "suspend: true, "), 1),
        (scaled_job("false"), 0),
        (scaled_job("true"), 1),
        (
            DEPLOYMENT.replace("spec:\n  t", "spec:\n  replicas: 0.0\n  t"),
            1,
        ),
    ] {
        let mut list = listed(&text);
        assert_eq!(list.remove_inactive(), inactive, "{text}");
        assert_eq!(list.workloads.len(), 1 - inactive, "{text}");
    }
}

#[test]
fn what_keda_holds_at_zero_is_inactive() {
    let scaled = |annotation: &str| {
        format!(
            "---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {{name: x, namespace: \
             shop, annotations: {{autoscaling.keda.sh/{annotation}}}}}\nspec: {{scaleTargetRef: \
             {{name: web}}}}\n"
        )
    };
    let at_zero = DEPLOYMENT.replace("spec:\n  t", "spec:\n  replicas: 0\n  t");
    // `paused` keeps the replicas that there are.
    for (annotation, deployment, inactive) in [
        ("paused-replicas: '0'", DEPLOYMENT, 1),
        ("paused-replicas: '2'", DEPLOYMENT, 0),
        ("paused: 'true'", DEPLOYMENT, 0),
        ("paused: 'true'", &at_zero, 1),
        // The first event starts a pod.
        ("paused: 'false'", &at_zero, 0),
    ] {
        for text in [
            scaled(annotation) + "---\n" + deployment,
            deployment.to_owned() + &scaled(annotation),
        ] {
            assert_eq!(listed(&text).remove_inactive(), inactive, "{text}");
        }
    }
}

#[test]
fn a_custom_resource_may_have_fields_of_other_types() {
    let resource = "apiVersion: example.com/v1\nkind: App\nmetadata: {name: a}\nspec:\n  template:\n    \
                    spec: {terminationGracePeriodSeconds: '{{ seconds }}', containers: [{image: a}]}\n";
    assert_eq!(
        found(&format!("{resource}---\n{DEPLOYMENT}")),
        (
            vec![vec!["repo/setup:1".to_owned(), "repo/web:1.4".to_owned()]],
            vec!["App.example.com default/a (app.yaml, line 1)".to_owned()]
        )
    );
}
