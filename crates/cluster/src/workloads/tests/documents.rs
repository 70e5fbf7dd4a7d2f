//! Texts: documents, lists, and what is wrong in them.

use std::fmt::Write as _;

use super::*;
use crate::scheduling::System;

#[test]
fn documents_lists_and_kinds_are_read_in_order() {
    let text = format!(
        "# a comment\n---\n{DEPLOYMENT}---\napiVersion: v1\nkind: Service\nmetadata: {{name: web}}\n---\n---\n\
         kind: List\nitems:\n\
         - kind: CronJob\n  metadata: {{name: nightly}}\n  spec:\n    jobTemplate:\n      spec:\n        template:\n          \
         spec: {{containers: [{{name: job, image: repo/job:2}}]}}\n\
         - kind: Pod\n  metadata: {{name: one}}\n  spec: {{containers: [{{name: a, image: repo/a}}], nodeSelector: null}}\n"
    );
    let workloads = read(&text);
    let seen: Vec<_> = workloads
        .iter()
        .map(|workload| {
            let id = &workload.id;
            let images: Vec<_> = workload
                .template
                .containers
                .iter()
                .map(|container| container.image.as_str())
                .collect();
            (
                id.to_string(),
                images.join(" "),
                workload.origin.as_ref().unwrap().line,
            )
        })
        .collect();
    let expected = [
        ("Deployment shop/web", "repo/setup:1 repo/web:1.4", 3),
        ("CronJob default/nightly", "repo/job:2", 23),
        ("Pod default/one", "repo/a", 30),
    ]
    .map(|(id, images, line)| (id.to_owned(), images.to_owned(), line));
    assert_eq!(seen, expected);
    assert_eq!(workloads[0].template.grace_seconds, Some(120));
    assert_eq!(workloads[0].template.system(), System::Windows);
}

#[test]
fn what_helm_template_prints_is_read_with_its_empty_documents_and_anchors() {
    let workloads = read(
        "---\n# Source: shop/templates/empty.yaml\n---\n# Source: shop/templates/web.yaml\n\n\
         apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: \"web\"\n  labels: &labels\n    app: web\n\
         spec:\n  selector: {matchLabels: *labels}\n  template:\n    metadata: {labels: *labels}\n    \
         spec:\n      nodeSelector: {kubernetes.io/os: windows}\n      containers:\n      \
         - &app {name: a, image: \"app:1\"}\n      - {<<: *app, name: b}\n---\n# the end\n",
    );
    let names: Vec<_> = workloads[0]
        .template
        .containers
        .iter()
        .map(|container| (container.name.as_str(), container.image.as_str()))
        .collect();
    assert_eq!(names, [("a", "app:1"), ("b", "app:1")]);
    assert_eq!(workloads.len(), 1);
}

#[test]
fn json_of_kubectl_is_read_also_where_items_do_not_say_their_kind() {
    let text = r#"{"kind":"PodList","items":[
        {"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}]}
        {"kind":"Pod","metadata":{"name":"q"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
    let workloads = read(text);
    let names: Vec<_> = workloads
        .iter()
        .map(|workload| {
            (
                workload.id.name.as_str(),
                workload.origin.as_ref().unwrap().line,
            )
        })
        .collect();
    assert_eq!(names, [("p", 2), ("q", 3)]);
}

#[test]
fn a_fault_in_an_item_of_a_list_is_reported_at_the_item() {
    let item = |image: &str| {
        format!(
            "- kind: Pod\n  metadata: {{name: p}}\n  spec: {{containers: [{{image: {image}}}]}}\n"
        )
    };
    let anchored = "a: &a {kind: Pod, spec: 1}\nitems:\n- {kind: Service, apiVersion: v1}\n- *a\n";
    let json = r#"{"items" : [],
        "metadata": {"items": [1, {"]": "[{\\\"\\\\"}], "a": "items"},
        "items": [{"kind": "Pod", "spec": {"containers": [{"image": "a"}, {"image": "b"}]}},
        {
          "kind": "Pod",
          "spec": {"containers": [{"image": 7}]}}]}"#;
    let of_a_kind = format!("kind: List\nitems:\n{}\n# third\n{}", item("a"), item("7"));
    for (text, start) in [
        (&*of_a_kind, "line 8: Pod p: "),
        (&*format!("items:\n{}- text\n", item("a")), "line 5: "),
        (anchored, "line 4: "),
        (json, "line 4: Pod "),
    ] {
        assert!(message(text).starts_with(start), "{}", message(text));
    }
}

#[test]
fn a_list_whose_end_is_missing_is_refused() {
    // As kubectl prints it: the kind is behind the items.
    let start = "apiVersion: v1\nitems:\n- kind: Service\n  metadata:\n    name: a\n";
    for rest in ["", "    labels:\n", "kind:"] {
        let message = message(&format!("{start}{rest}"));
        let expected = "line 1: found a list without its kind";
        assert!(message.starts_with(expected), "{message}");
    }
    listed(&format!("{start}kind: List\n"));
    listed("{\"items\": [{\"kind\": \"Service\"}]}");
    let cut = message("apiVersion: v1\nitems:\n");
    let expected = "line 1: found a list with nothing after `items:`";
    assert!(cut.starts_with(expected), "{cut}");
    for items in ["[]", "null"] {
        listed(&format!("apiVersion: v1\nitems: {items}\nkind: List\n"));
    }
    listed("{\"kind\": \"PodList\", \"items\": null}");
    // As Helm renders a loop over nothing; the kind is above the items.
    let rendered = "apiVersion: v1\nkind: ConfigMapList\nitems:\n";
    let pod = "---\nkind: Pod\nspec: {containers: [{image: a}]}\n";
    assert_eq!(listed(&[rendered, pod].concat()).workloads.len(), 1);
}

#[test]
fn there_is_a_limit_on_objects_and_on_their_size() {
    const MOST: usize = 100_000;
    let list = |item: &str, count| {
        let items = format!("{item},").repeat(count - 1);
        format!("{{\"kind\":\"List\",\"items\":[{items}{item}]}}")
    };
    let item = "{\"kind\":\"Secret\"}";
    listed(&list(item, MOST));
    for text in [
        list(item, MOST + 1),
        list(&list(item, MOST / 2 + 1), 2),
        item.repeat(MOST + 1),
        format!("items:\n{}", "- {}\n".repeat(MOST + 1)),
    ] {
        let message = message(&text);
        assert!(message.contains("more than 100000 objects"), "{message}");
    }

    let pod = |containers: &str| {
        format!("{{\"kind\":\"Pod\",\"spec\":{{\"containers\":[{containers}]}}}}")
    };
    let indented = ["{\"image\":\"i\"}"; 3].join(&format!(",{}", " ".repeat(1 << 20)));
    assert_eq!(found(&pod(&indented)).0, [["i", "i", "i"]]);
    // The API server takes it: a ConfigMap of 1 MiB, whose quotes are escaped.
    let config = "\\\"".repeat(1 << 20);
    let config = format!("{{\"kind\":\"ConfigMap\",\"data\":{{\"a\":\"{config}\"}}}}");
    let with_pod = format!("{config}{}", pod("{\"image\":\"i\"}"));
    assert_eq!(found(&with_pod).0, [["i"]]);
    let message = message(&pod(&vec!["{}"; 1 << 20].join(",")));
    let expected =
        "line 1: an object has more than 3 MiB, which the API server refuses: leave it out";
    assert_eq!(message, expected);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    assert_eq!(
        message("kind: Pod\nmetadata: {name: p}\nspec: {containers: [{image: 7}]}"),
        "line 1: Pod p: spec.containers[0].image: invalid type: integer `7`, expected a string"
    );
    assert_eq!(
        message("---\na: 1\n"),
        "line 2: expected a Kubernetes object with a kind, found an object without one"
    );
    assert_eq!(
        message("- a\n"),
        "line 1: expected a Kubernetes object with a kind, found a list"
    );
    assert_eq!(
        message("kind: Status\nstatus: Failure\nmessage: no rights\n"),
        "line 1: found an error of the API server: no rights"
    );
    let custom = listed("apiVersion: example.com/v1\nkind: Status\nmessage: no rights\n");
    assert_eq!(custom.skipped.len(), 1);
    let malformed = message("kind: Pod\nspec: {a: [\n");
    assert!(malformed.starts_with("line "), "{malformed}");
    assert!(
        malformed.ends_with("expected Kubernetes objects as YAML or JSON"),
        "{malformed}"
    );
    let json = message("{\"kind\":\n \"Po");
    assert!(json.starts_with("line 2, column "), "{json}");
    let operator = message(
        "kind: Pod\nmetadata: {name: p}\nspec: {containers: [], affinity: {nodeAffinity: \
         {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: \
         [{matchExpressions: [{key: a, operator: Is}]}]}}}}",
    );
    assert!(operator.contains("unknown variant `Is`"), "{operator}");
}

#[test]
fn a_byte_order_mark_may_begin_any_line_as_for_kubectl() {
    let pod = |name: &str| {
        format!(
            "\u{feff}kind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{{image: i}}]}}\n"
        )
    };
    let places = |text: &str| {
        let workloads = read(text).into_iter();
        let places = workloads.map(|it| (it.id.name, it.origin.unwrap().line));
        places.collect::<Vec<_>>()
    };
    let commented = format!("---\n# Source: a.yaml\n{}", pod("a"));
    assert_eq!(places(&commented), [("a".to_owned(), 3)]);
    let joined = format!("---\n{}---\n{}", pod("a"), pod("b"));
    let expected = [("a".to_owned(), 2), ("b".to_owned(), 6)];
    assert_eq!(places(&joined), expected);
}

#[test]
fn lines_of_quoted_text_and_flow_style_may_begin_with_tabs_as_for_kubectl() {
    let pod = |fields: &str| format!("kind: Pod\nmetadata: {{name: p}}\nspec:\n  {fields}\n");
    for fields in [
        "containers: [{image: i, args: [\"if (1) {\n\t\texit\n\t}\"]}]",
        "containers: [{image: i, args: ['a\n\t b']}]",
        "containers:\n    - image: i\n      workingDir: \"a\n\t\tb\n\n\tc\"",
        "containers: [\n\t{image: i,\n\tname: a},\n\t]",
        "containers:\n  - image: i\n    args: [\n\t# a\n\t\"a\",\n\t\"b\"]",
    ] {
        assert_eq!(found(&pod(fields)).0, [["i"]], "{fields}");
    }
    let twice = pod("containers: [{image: a, image: i, args: [\"a\n\tb\"]}]");
    let warnings = listed(&twice).warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    // In block style they are refused.
    for fields in [
        "containers:\n\t- image: i",
        "containers: [{image: i}]\n  os:\n\tname: windows",
        "os:\n\tname: windows\n  containers: [{image: i}]",
    ] {
        let message = message(&pod(fields));
        let problem = "tabs disallowed within this context";
        assert!(message.contains(problem), "{fields}: {message}");
    }
}

#[test]
fn text_that_repeats_itself_without_end_is_refused() {
    let mut text = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
    for level in 1..12 {
        let before = format!("*a{},", level - 1).repeat(9);
        writeln!(text, "a{level}: &a{level} [{before}]").unwrap();
    }
    let started = std::time::Instant::now();
    assert!(WorkloadList::default().read(&text, "bomb").is_err());
    // Trying all alternatives would never end.
    assert!(started.elapsed() < std::time::Duration::from_mins(1));
}

#[test]
fn comments_are_no_matter_however_many_there_are() {
    let comments = "# as AKS writes them\n".repeat(1000);
    let inner = "        # and here\n".repeat(1000);
    let text = DEPLOYMENT.replace(
        "      containers:\n",
        &format!("{inner}      containers:\n"),
    );
    assert_eq!(read(&format!("{comments}{text}{comments}")), {
        let mut plain = read(DEPLOYMENT);
        plain[0].origin.as_mut().unwrap().line = 1001;
        plain
    });
}

#[test]
fn of_a_key_that_is_repeated_the_last_counts_with_a_warning() {
    let text = DEPLOYMENT.replace(
        "image: repo/web:1.4",
        "image: repo/old:1, image: repo/web:1.4",
    );
    let list = listed(&text);
    assert_eq!(
        list.warnings,
        ["app.yaml: line 12: duplicate mapping key: image; the last value is used"]
    );
    assert_eq!(list.into_workloads(), read(DEPLOYMENT));
    // Other errors remain.
    assert!(message(&format!("{text}  - [\n")).contains("expected Kubernetes objects"));
}

#[test]
fn of_a_key_that_is_repeated_in_json_the_last_counts_with_a_warning_too() {
    let pod = |name: &str, image: &str| {
        format!(
            "{{\"kind\": \"Pod\", \"metadata\": {{\"name\": \"{name}\"}},\n \"spec\": {{\"containers\": \
             [{{\"name\": \"c\", {image}\"image\": \"repo/web:1.4\"}}]}}}}\n"
        )
    };
    let plain = pod("p", "");
    let twice = format!("{plain}{}", pod("q", "\"image\": \"repo/old:1\",\n"));
    assert_eq!(
        listed(&twice).warnings,
        ["app.yaml: line 5: duplicate mapping key: image; the last value is used"]
    );
    let images = found(&twice).0;
    assert_eq!(images, [["repo/web:1.4"], ["repo/web:1.4"]]);
    assert_eq!(listed(&plain).warnings, [""; 0]);
    // Other errors remain.
    assert!(message(&format!("{twice}{{")).contains("EOF"));
}

#[test]
fn objects_are_read_as_json_documents_and_in_flow_style_too() {
    let pod = |name: &str| {
        format!(
            r#"{{"kind":"Pod","metadata":{{"name":"{name}"}},"spec":{{"containers":[{{"name":"c","image":"a:1"}}]}}}}"#
        )
    };
    let flow = "{kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: 'a:1'}]}}";
    for text in [
        format!("{}\n---\n{}\n", pod("a"), pod("b")),
        format!("---\n{}\n---\n{}", pod("a"), pod("b")),
        format!("{}\n{}", pod("a"), pod("b")),
        format!("{flow}\n---\n{}\n", pod("b")),
        format!(
            "{}\n---\nkind: Pod\nmetadata: {{name: b}}\nspec: {{containers: []}}\n",
            pod("a")
        ),
    ] {
        let names: Vec<_> = read(&text).into_iter().map(|pod| pod.id.name).collect();
        assert_eq!(names, ["a", "b"], "{text}");
    }
}

#[test]
fn a_template_of_helm_is_called_one() {
    for action in [
        "if .Values.windows",
        "tpl ((.Files.Glob \"conf/*\").AsConfig) .",
        "$port := 80",
        ".Capabilities.KubeVersion",
        "if and (IsKubernetesVersionGe \"1.18.0\") HasWindows",
    ] {
        let text = format!("kind: ConfigMap\ndata:\n  {{{{- {action} }}}}\n  a: b\n");
        let place = "line 3, column 5: {{ begins a template: render it first, a Helm chart with \
                     `helm template` (";
        assert!(message(&text).starts_with(place), "{}", message(&text));
    }
    let image = "kind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - image: \"{{ .Values.image }}:1\"\n";
    assert_eq!(
        message(image),
        "line 1: Pod default/p: \"{{ .Values.image }}:1\" is a Helm template: render it with \
         `helm template`"
    );
    for field in [
        "nodeSelector: {kubernetes.io/os: \"{{ .Values.os }}\"}",
        "runtimeClassName: \"{{ .Values.class }}\"",
        "os: {name: \"{{ .Values.os }}\"}",
    ] {
        let pod = format!("kind: Pod\nspec: {{{field}, containers: [{{image: a}}]}}\n");
        let message = message(&pod);
        assert!(message.contains("is a Helm template"), "{message}");
    }
    let other = message("kind: Pod\nspec:\n  containers:\n  - image: {{ .ServerCore }}\n");
    assert!(other.contains("{{ begins a template"), "{other}");
    // Argo's own parameters are unchanged, and a damaged text without any is reported as such.
    let argo = "kind: Pod\nspec: {containers: [{image: '{{inputs.parameters.image}}'}]}\n";
    listed(argo);
    assert!(!message("kind: [\n").contains("Helm"));
}

#[test]
fn an_error_far_from_a_template_is_reported_as_it_is() {
    let text = "kind: ConfigMap\ndata:\n  rule: |\n    {{ $labels.instance }} is down\n---\n\
                kind: Pod\nspec:\n  containers:\n  - name: a\n     image: b\n";
    let error = message(text);
    assert!(
        error.starts_with("line 10, column 11: mapping values are not allowed"),
        "{error}"
    );
    assert!(!error.contains("template"), "{error}");
}

#[test]
fn a_field_of_the_wrong_type_is_named_with_its_path() {
    let text = "kind: CronJob\nmetadata: {name: c}\nspec: {jobTemplate: {spec: {template: {spec: \
                {containers: [{image: {repository: a}}]}}}}}\n";
    assert_eq!(
        message(text),
        "line 1: CronJob c: spec.jobTemplate.spec.template.spec.containers[0].image: invalid type: \
         map, expected a string"
    );
    for (kind, field, expected) in [
        ("Deployment", "replicas: '0'", "a number"),
        ("StatefulSet", "replicas: [1]", "a number"),
        ("CronJob", "suspend: 'true'", "a boolean"),
        ("Job", "completions: two", "a number"),
    ] {
        let text = format!("kind: {kind}\nmetadata: {{name: a}}\nspec: {{{field}}}\n");
        let message = message(&text);
        let (name, _) = field.split_once(':').unwrap();
        let start = format!("line 1: {kind} a: spec.{name}: invalid type: ");
        assert!(message.starts_with(&start), "{message}");
        assert!(message.ends_with(expected), "{message}");
    }
    // That of a custom resource may have any type.
    let custom = "apiVersion: a.b/v1\nkind: Deployment\nspec: {replicas: '0', template: {spec: \
                  {containers: [{image: a}]}}}\n";
    assert_eq!(read(custom).len(), 1);
    let placeholder = "kind: Deployment\nmetadata: {name: a}\nspec: {replicas: '${COUNT}'}\n";
    assert_eq!(read(placeholder).len(), 1);
}

#[test]
fn an_object_of_a_cluster_is_no_template_of_helm() {
    let text = "kind: Pod\nmetadata: {name: p, uid: abc}\nspec: {containers: [{image: '{{ .Values.a }}'}]}\n";
    assert_eq!(found(text).0, [["{{ .Values.a }}"]]);
}

#[test]
fn a_kustomization_names_its_patches() {
    let text = "kind: Kustomization\nresources: [a.yaml]\npatches: [{path: b.yaml}, {patch: 'c: d'}]\n\
                patchesStrategicMerge: [e.yaml]\npatchesJson6902: [{path: f.yaml}]\n";
    assert_eq!(patch_files(text), ["b.yaml", "e.yaml", "f.yaml"]);
    assert_eq!(patch_files("["), [""; 0]);
}
