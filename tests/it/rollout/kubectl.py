#!/usr/bin/env python3
"""A kubectl for workloads.json and nodes.json of this folder, as far as advice needs one. It refuses
what the API refuses: to move a pod, to change a job, to make one with another's labels."""

import json
import sys

MADE = {"uid": "8c1f", "resourceVersion": "7"}
LABELS = {"controller-uid": "8c1f", "batch.kubernetes.io/controller-uid": "8c1f"}


def merge(value, patch):
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    value = dict(value) if isinstance(value, dict) else {}
    for name, field in patch.items():
        if field is None:
            value.pop(name, None)
        else:
            value[name] = merge(value.get(name), field)
    return value


def load(file):
    with open(file) as text:
        return json.load(text)


def save(file, value):
    with open(file, "w") as text:
        json.dump(value, text)


def place(items, kind, name, namespace):
    for place, item in enumerate(items):
        own = item["metadata"]
        if (item["kind"].lower(), own["name"], own["namespace"]) == (kind, name, namespace):
            return place
    sys.exit(f"Error from server (NotFound): {kind} {name!r} not found")


def as_the_cluster_has_it(item):
    """What nobody wrote into the manifest."""
    item = merge(item, {"metadata": MADE, "status": {}})
    if item["kind"] == "Pod":
        return merge(item, {"spec": {"nodeName": "win-a"}})
    if item["kind"] == "Job" and not item["spec"].get("manualSelector"):
        own = {"selector": {"matchLabels": LABELS}, "template": {"metadata": {"labels": LABELS}}}
        return merge(item, {"spec": own})
    return item


def check_new(item):
    spec = item["spec"]
    if item["kind"] == "Pod" and "nodeName" in spec:
        sys.exit("the pod goes where it was")
    labels = spec.get("template", {}).get("metadata", {}).get("labels", {})
    if item["kind"] != "Job":
        return
    if spec.get("manualSelector"):
        selector = spec.get("selector", {}).get("matchLabels", {})
        if not selector or not selector.items() <= labels.items():
            sys.exit("The Job is invalid: spec.selector: Required value")
    elif "selector" in spec or "controller-uid" in labels:
        sys.exit("The Job is invalid: spec.selector: Invalid value: `selector` not auto-generated")


def main(words):
    match words:
        case ["get", kind, name, "--namespace", namespace, "--output", "json"]:
            items = load("workloads.json")["items"]
            item = items[place(items, kind, name, namespace)]
            print(json.dumps(as_the_cluster_has_it(item)))
        case ["patch", "--local", "--filename", "-", "--type", "merge", "--patch", patch,
              "--output", "json"]:
            print(json.dumps(merge(json.load(sys.stdin), json.loads(patch))))
        case ["patch", kind, name, "--namespace", namespace, "--type", "merge", "--patch", patch]:
            if kind in ("pod", "job"):
                sys.exit(f"The {kind} is invalid: field is immutable")
            workloads = load("workloads.json")
            at = place(workloads["items"], kind, name, namespace)
            workloads["items"][at] = merge(workloads["items"][at], json.loads(patch))
            save("workloads.json", workloads)
        case ["replace", "--force", "--filename", file]:
            item = load(file)
            check_new(item)
            workloads = load("workloads.json")
            own = item["metadata"]
            at = place(workloads["items"], item["kind"].lower(), own["name"], own["namespace"])
            workloads["items"][at] = item
            save("workloads.json", workloads)
        case ["set", "image", object, change, "--namespace", namespace]:
            kind, name = object.split("/")
            container, image = change.split("=", 1)
            workloads = load("workloads.json")
            item = workloads["items"][place(workloads["items"], kind, name, namespace)]
            spec = item["spec"] if kind == "pod" else item["spec"]["template"]["spec"]
            for own in spec["containers"]:
                if own["name"] == container:
                    own["image"] = image
            save("workloads.json", workloads)
        case ["rollout", "restart", object, "--namespace", namespace]:
            kind, name = object.split("/")
            place(load("workloads.json")["items"], kind, name, namespace)
        case ["cordon", *names] | ["drain", *names, "--ignore-daemonsets"]:
            nodes = load("nodes.json")
            for node in nodes["items"]:
                if node["metadata"]["name"] in names:
                    node["spec"] = {"unschedulable": True}
            save("nodes.json", nodes)
        case _:
            sys.exit(f"error: {words}")


main(sys.argv[1:])
