#!/usr/bin/env bash
# Replays a Patch Tuesday, that of https://github.com/actions/runner-images/issues/11582: images on the
# bases of February 2025 did not start on hosts of January.
#
#   patch-tuesday.sh REGISTRY
#
# REGISTRY takes the images. A test runs this with a registry and bases on loopback.
set -euo pipefail
registry=$1
january=(win-2022=20348.3091 win-2025-a=26100.2894 win-2025-b=26100.2894)
february=(win-2022=20348.3207 win-2025-a=26100.3194 win-2025-b=26100.3194)
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

say() { printf '\n== %s\n' "$*"; }
# Runs a command whose answer may be no, and shows its exit code.
ask() {
    local code=0
    "$@" || code=$?
    echo "exit code $code"
    [ "$code" -le 1 ]
}
# The nodes, as kubectl lists them: NAME=BUILD.
nodes() {
    local entry
    printf '{"kind": "List", "apiVersion": "v1", "items": ['
    for entry; do
        [ "$entry" = "$1" ] || printf ', '
        printf '{"kind": "Node", "metadata": {"name": "%s", "labels": {"kubernetes.io/os": "windows"}},
 "status": {"nodeInfo": {"operatingSystem": "windows", "architecture": "amd64",
  "kernelVersion": "10.0.%s", "containerRuntimeVersion": "containerd://1.7.20"}}}' "${entry%=*}" "${entry#*=}"
    done
    printf ']}\n'
}

check() {
    ask wincimg check-compat --nodes nodes.json --on 2025-02-12 --strict --quiet "$@"
}

say "January: the site and the orders program are built for all nodes"
nodes "${january[@]}" > nodes.json
for image in "$here/web" "$here/orders"; do
    wincimg build "$image" --nodes nodes.json --registry "$registry" --tag 1.4 --push --quiet
done
check "$registry/web:1.4" "$registry/orders:1.4"

say "Patch Tuesday: a pipeline moves the site to February's bases, but the nodes lag behind"
nodes "${february[@]}" > next.json
wincimg image update "$registry/web:1.4" --nodes next.json --tag 1.5 --push --quiet
check "$registry/web:1.5"

say "What comes first? If a node is updated, January's images still start there"
check "$registry/web:1.4" "$registry/orders:1.4" --simulate "win-2025-a=${february[1]#*=}"

say "So the nodes first: now February's site starts everywhere"
mv next.json nodes.json
check "$registry/web:1.5"

say "Then the orders program moves, too"
ask wincimg image update "$registry/orders:1.4" --nodes nodes.json --check --quiet
wincimg image update "$registry/orders:1.4" --nodes nodes.json --push --quiet
ask wincimg image update "$registry/orders:1.4" --nodes nodes.json --check --quiet
