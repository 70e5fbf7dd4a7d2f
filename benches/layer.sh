#!/bin/bash
# Compare the push of a folder of text as a layer with `tar | gzip -6 | upload`.
#
#   benches/layer.sh [FOLDER] [ROUNDS]
#
# The default FOLDER is 250 MB of source code from cargo's registry cache. Requires curl and
# docker-registry. Both run in turns on the same cores; the best of ROUNDS (3) counts.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
registry_pid=
cleanup() {
    [ -z "$registry_pid" ] || kill "$registry_pid" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT

folder=${1:-}
rounds=${2:-3}
if [ -z "$folder" ]; then
    folder=$work/text
    mkdir "$folder"
    sources=${CARGO_HOME:-$HOME/.cargo}/registry/src
    find "$sources" -type f -regex '.*\.\(rs\|md\|toml\|json\|txt\|c\|h\)' -size -3M -printf '%s %P\n' |
        LC_ALL=C sort -k 2 | awk '{ sum += $1; if (sum > 250e6) exit; print substr($0, length($1) + 2) }' |
        tar -C "$sources" -cf - -T - | tar -C "$folder" -xf -
fi

cargo build --quiet --profile dist --example layer
layer=${CARGO_TARGET_DIR:-target}/dist/examples/layer

port=$(shuf -i 20000-60000 -n 1)
url=http://127.0.0.1:$port
mkdir "$work/registry"
printf 'version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: "127.0.0.1:%s"}\n' \
    "$work/registry" "$port" > "$work/registry.yml"
docker-registry serve "$work/registry.yml" > "$work/registry.log" 2>&1 &
registry_pid=$!
curl --silent --fail --retry 20 --retry-connrefused --retry-delay 1 --output /dev/null "$url/v2/"

# upload FILE|- REPOSITORY: sends the bytes and prints the URL that ends the upload.
upload() {
    local begin
    begin=$(curl --silent --fail --request POST --head "$url/v2/$2/blobs/uploads/" |
        tr -d '\r' | sed -n 's/^[Ll]ocation: //p')
    curl --silent --fail --request PATCH --upload-file "$1" --dump-header - --output /dev/null \
        --header 'Content-Type: application/octet-stream' "$begin" |
        tr -d '\r' | sed -n 's/^[Ll]ocation: //p'
}

commit() { curl --silent --fail --request PUT --output /dev/null "$1&digest=$2"; }

with_tar_and_gzip() {
    local target
    target=$(tar -C "$folder" -cf - . | gzip -6 |
        tee >(sha256sum | cut -d ' ' -f 1 > "$work/digest") >(wc -c > "$work/size") |
        upload - "gzip-$1")
    # The sums run beside the upload; they are there when their files are.
    until [ -s "$work/digest" ] && [ -s "$work/size" ]; do sleep 0.01; done
    commit "$target" "sha256:$(cat "$work/digest")"
}

with_wincimg() {
    local digest size target
    read -r digest size _ < <("$layer" "$folder" "$work/blob" "$2")
    target=$(upload "$work/blob" "wincimg-$2-$1")
    commit "$target" "$digest"
    echo "$size" > "$work/size"
}

# measure NAME COMMAND...: keeps the shortest time of the name, in milliseconds.
declare -A best sizes
measure() {
    local name=$1 start took
    shift
    rm -f "$work/digest" "$work/size"
    start=$(date +%s%N)
    "$@"
    took=$((($(date +%s%N) - start) / 1000000))
    sizes[$name]=$(($(cat "$work/size")))
    if [ -z "${best[$name]:-}" ] || [ "$took" -lt "${best[$name]}" ]; then best[$name]=$took; fi
}

for round in $(seq "$rounds"); do
    measure gzip with_tar_and_gzip "$round"
    measure wincimg with_wincimg "$round" gzip
    measure zstd with_wincimg "$round" zstd
done
small=$(tar -C "$folder" -cf - . | gzip -1 | wc -c)

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }
echo "machine: $(nproc) × $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
echo "folder: $(($(du -sb --apparent-size "$folder" | cut -f 1) / 1000000)) MB in $(find "$folder" -type f | wc -l) files"
echo "tar | gzip -6 | upload:   ${best[gzip]} ms, ${sizes[gzip]} bytes"
echo "wincimg's layer, gzip:    ${best[wincimg]} ms, ${sizes[wincimg]} bytes"
echo "wincimg's layer, zstd:    ${best[zstd]} ms, ${sizes[zstd]} bytes"
echo "times as fast with gzip:  $(ratio "${best[gzip]}" "${best[wincimg]}") (at least 3)"
echo "times as fast with zstd:  $(ratio "${best[gzip]}" "${best[zstd]}")"
echo "size of that of gzip -1:  $(ratio "${sizes[wincimg]}" "$small") (at most 1)"
