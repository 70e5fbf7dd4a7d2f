#!/usr/bin/env bash
# Mirror a large image between two docker-registries with `wincimg image mirror` and `skopeo copy`, in turns,
# and print time, ratio and peak memory.
#
#   cargo build --profile dist && benches/mirror.sh
#   SIZE_MIB=256 LAYERS=8 RUNS=5 WINCIMG=path/to/wincimg benches/mirror.sh
#   TMPDIR=/dev/shm SIZE_MIB=500 LAYERS=1 benches/mirror.sh
#
# Requires docker-registry, skopeo, GNU time (/usr/bin/time), openssl and three times SIZE_MIB in TMPDIR.
# Exits with 1 if wincimg is slower than skopeo or uses more than 64 MiB.
set -euo pipefail

size_mib=${SIZE_MIB:-1024}
layers=${LAYERS:-8}
runs=${RUNS:-3}
wincimg=${WINCIMG:-$(dirname "$0")/../target/dist/wincimg}
memory_limit_kib=$((64 * 1024))

for program in docker-registry skopeo openssl "$wincimg" /usr/bin/time; do
    command -v "$program" >/dev/null || { echo "error: $program not found" >&2; exit 3; }
done

work=$(mktemp -d)
pids=()
cleanup() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    rm -rf "$work"
}
trap cleanup EXIT

free_port() {
    local port
    while :; do
        port=$((20000 + RANDOM % 20000))
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
}

# start_registry NAME PORT: leaves the process id in $registry_pid.
start_registry() {
    printf 'version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: "127.0.0.1:%s"}\n' \
        "$work/$1" "$2" >"$work/$1.yml"
    docker-registry serve "$work/$1.yml" >"$work/$1.log" 2>&1 &
    registry_pid=$!
    pids+=("$registry_pid")
    for _ in $(seq 100); do
        (exec 3<>"/dev/tcp/127.0.0.1/$2") 2>/dev/null && return
        sleep 0.1
    done
    echo "error: docker-registry does not listen" >&2
    exit 3
}

stop_registry() {
    kill "$registry_pid" && wait "$registry_pid" 2>/dev/null || true
    rm -rf "${work:?}/$1"
}

# put_blob FILE: moves it into the layout and prints its digest.
put_blob() {
    local hex
    hex=$(openssl dgst -sha256 -r "$1" | cut -d' ' -f1)
    mv "$1" "$work/layout/blobs/sha256/$hex"
    echo "sha256:$hex"
}

# make_layout: an OCI layout with one Windows image whose layers do not compress.
make_layout() {
    mkdir -p "$work/layout/blobs/sha256"
    local bytes=$((size_mib * 1024 * 1024 / layers)) entries="" diff_ids="" digest
    for number in $(seq "$layers"); do
        openssl enc -aes-128-ctr -nosalt -pass "pass:$number" -in /dev/zero 2>/dev/null |
            head -c "$bytes" >"$work/blob" || true
        digest=$(put_blob "$work/blob")
        entries+="${entries:+,}{\"mediaType\":\"application/vnd.oci.image.layer.v1.tar+gzip\",\"digest\":\"$digest\",\"size\":$bytes}"
        diff_ids+="${diff_ids:+,}\"$digest\""
    done
    printf '{"os":"windows","architecture":"amd64","os.version":"10.0.17763.973","config":{},"rootfs":{"type":"layers","diff_ids":[%s]}}' \
        "$diff_ids" >"$work/blob"
    local config_size manifest_size config manifest
    config_size=$(stat -c %s "$work/blob")
    config=$(put_blob "$work/blob")
    printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"%s","size":%s},"layers":[%s]}' \
        "$config" "$config_size" "$entries" >"$work/blob"
    manifest_size=$(stat -c %s "$work/blob")
    manifest=$(put_blob "$work/blob")
    printf '{"imageLayoutVersion":"1.0.0"}' >"$work/layout/oci-layout"
    printf '{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"%s","size":%s,"annotations":{"org.opencontainers.image.ref.name":"bench"}}]}' \
        "$manifest" "$manifest_size" >"$work/layout/index.json"
}

# measure NAME COMMAND…: appends "SECONDS KIB" to the file of that name.
measure() {
    local name=$1
    shift
    if ! /usr/bin/time -f '%e %M' -o "$work/time" "$@" >"$work/out" 2>&1; then
        cat "$work/out" >&2
        exit 3
    fi
    cat "$work/time" >>"$work/$name.times"
}

with_wincimg() {
    measure "$1" env DOCKER_CONFIG="$work" "$wincimg" mirror "$source/windows/servercore:bench" \
        --to "$target/mirror" --insecure-registry "$source" --insecure-registry "$target" \
        --cache-dir "$work/cache" "${@:2}"
}

with_no_facts() { with_wincimg "$1" --no-facts; }

with_skopeo() {
    measure "$1" skopeo --insecure-policy --override-os windows copy \
        --src-tls-verify=false --dest-tls-verify=false \
        "docker://$source/windows/servercore:bench" "docker://$target/mirror/windows/servercore:bench"
}

median() { sort -n "$work/$1.times" | awk '{all[NR] = $1} END {print all[int((NR + 1) / 2)]}'; }
peak() { awk '$2 > most {most = $2} END {print most}' "$work/$1.times"; }

echo "making an image of $size_mib MiB in $layers layers" >&2
make_layout
source="127.0.0.1:$(free_port)"
start_registry source "${source#*:}"
skopeo --insecure-policy --override-os windows copy --dest-tls-verify=false \
    "oci:$work/layout:bench" "docker://$source/windows/servercore:bench" >/dev/null
rm -rf "$work/layout"

target="127.0.0.1:$(free_port)"
for run in $(seq "$runs"); do
    echo "run $run of $runs" >&2
    for tool in wincimg no_facts skopeo; do
        start_registry target "${target#*:}"
        "with_$tool" "$tool"
        "with_$tool" "$tool-again"
        stop_registry target
        rm -rf "$work/cache"
    done
done

printf '%-22s %12s %12s %12s %8s\n' "" wincimg --no-facts skopeo ratio
for what in "" -again; do
    ours=$(median "wincimg$what")
    theirs=$(median "skopeo$what")
    label=$([ -z "$what" ] && echo "first run, seconds" || echo "second run, seconds")
    printf '%-22s %12s %12s %12s %8s\n' "$label" "$ours" "$(median "no_facts$what")" "$theirs" \
        "$(awk -v a="$ours" -v b="$theirs" 'BEGIN {print (b > 0 ? sprintf("%.2f", a / b) : "-")}')"
done
memory=$(peak wincimg)
printf '%-22s %12s %12s %12s\n' "peak memory, KiB" "$memory" "$(peak no_facts)" "$(peak skopeo)"

awk -v a="$(median wincimg)" -v b="$(median skopeo)" 'BEGIN {exit !(a <= b)}' ||
    { echo "wincimg is slower than skopeo" >&2; exit 1; }
[ "$memory" -le "$memory_limit_kib" ] ||
    { echo "wincimg uses more than $((memory_limit_kib / 1024)) MiB" >&2; exit 1; }
