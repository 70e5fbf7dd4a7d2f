#!/usr/bin/env bash
# Installs the release of wincimg with the version of this checkout's Cargo.toml, so that an action
# pinned by tag, branch or commit installs its own program. Fetches only SHA256SUMS and one archive of
# that release.
#
# Uses the program in the runner's tool cache, if its digest is unchanged.
#
# Environment: variables of GitHub's runners (RUNNER_OS, RUNNER_ARCH, RUNNER_TOOL_CACHE, RUNNER_TEMP,
# GITHUB_PATH, GITHUB_OUTPUT), and RELEASES, SHA256, VERSION from the action's inputs.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
releases=${RELEASES:-https://github.com/wincimg/wincimg/releases/download}
pinned=$(tr '[:upper:]' '[:lower:]' <<<"${SHA256:-}")

# GitHub shows these lines as the step's error.
fail() {
    echo "::error title=wincimg::$1"
    [[ -z ${2:-} ]] || echo "hint: $2"
    exit 1
} >&2

# On Windows this runs in Git's bash, but the runner uses paths such as C:\.
unix_path() { if command -v cygpath >/dev/null; then cygpath -u "$1"; else echo "$1"; fi; }
runner_path() { if command -v cygpath >/dev/null; then cygpath -w "$1"; else echo "$1"; fi; }

version_of_tree() {
    sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml" | tr -d '\r'
}
version=${VERSION:-$(version_of_tree)}
version=${version#v}
[[ $version =~ ^[0-9]+(\.[0-9]+)+[0-9A-Za-z.+-]*$ ]] || fail "invalid version \"$version\""
[[ -z $pinned || $pinned =~ ^[0-9a-f]{64}$ ]] ||
    fail "invalid sha256 \"$pinned\": expected 64 hexadecimal digits"

program=wincimg
case ${RUNNER_OS:-Linux}-${RUNNER_ARCH:-X64} in
Linux-X64) archive=wincimg-$version-x86_64-unknown-linux-musl.tar.gz ;;
Linux-ARM64) archive=wincimg-$version-aarch64-unknown-linux-musl.tar.gz ;;
# Windows on ARM64 can run programs for x86_64.
Windows-*) archive=wincimg-$version-x86_64-pc-windows-gnu.zip program=wincimg.exe ;;
*) fail "unsupported runner: ${RUNNER_OS:-}-${RUNNER_ARCH:-}" \
    "install it with cargo install --git https://github.com/wincimg/wincimg --tag v$version --locked --profile dist" ;;
esac

cache=$(unix_path "${RUNNER_TOOL_CACHE:-${TMPDIR:-/tmp}}")/wincimg/$version
folder=$cache/${RUNNER_ARCH:-X64}
temp=$(mktemp -d "$(unix_path "${RUNNER_TEMP:-${TMPDIR:-/tmp}}")/wincimg.XXXXXX")
trap 'rm -rf "$temp"' EXIT

# The folder contains the program, its digest when unpacked, and its archive's digest.
is_installed() {
    [[ -f $folder/$program && -f $folder/installed.sha256 && -f $folder/archive.sha256 ]] &&
        [[ -z $pinned || $pinned == "$(<"$folder/archive.sha256")" ]] &&
        (cd "$folder" && sha256sum --check --status installed.sha256)
}

fetch() { # NAME
    local only=() from=$releases/v$version/$1
    # Redirects must not lead to plain HTTP.
    [[ $releases != https://* ]] || only=(--proto '=https')
    curl --fail --silent --show-error --location "${only[@]}" --retry 3 --connect-timeout 20 \
        --max-time 300 --output "$temp/$1" "$from" ||
        fail "cannot fetch $from" "check that release v$version has this file; for a mirror, set the input releases"
}

unpack() { # FILE FOLDER
    mkdir "$2"
    case $1 in
    *.zip)
        # Windows' own tar reads zip, the one of Git's bash does not.
        local tar=${SYSTEMROOT:+$(unix_path "$SYSTEMROOT")/System32/tar.exe}
        [[ -n $tar && -x $tar ]] || tar=bsdtar
        "$tar" -x -f "$(runner_path "$1")" -C "$(runner_path "$2")"
        ;;
    *) tar --extract --gzip --file "$1" --directory "$2" ;;
    esac
}

install() {
    fetch SHA256SUMS
    local expected actual
    expected=$(awk -v name="$archive" '$2 == name || $2 == "*" name {print $1}' "$temp/SHA256SUMS" | tr -d '\r')
    [[ $expected =~ ^[0-9a-f]{64}$ ]] || fail "SHA256SUMS of v$version does not have $archive"
    [[ -z $pinned || $pinned == "$expected" ]] ||
        fail "the release has another $archive than the one that is pinned: $expected" \
            "look up who changed the release; set the input sha256 only to what you trust"
    fetch "$archive"
    actual=$(sha256sum <"$temp/$archive")
    actual=${actual%% *}
    [[ $actual == "$expected" ]] ||
        fail "$archive has the wrong checksum: sha256 $actual, expected $expected" "run the job again; it is not installed"
    unpack "$temp/$archive" "$temp/unpacked"
    local found
    found=$(find "$temp/unpacked" -type f -name "$program" | head -n 1)
    [[ -n $found ]] || fail "$archive has no $program"
    local ready=$temp/ready
    mkdir "$ready"
    mv "$found" "$ready/$program"
    chmod +x "$ready/$program"
    (cd "$ready" && sha256sum "$program" >installed.sha256)
    echo "$actual" >"$ready/archive.sha256"
    mkdir -p "$cache"
    rm -rf "$folder"
    # Another job on this machine may have installed it meanwhile.
    mv -T "$ready" "$folder" 2>/dev/null || is_installed || fail "cannot write to $folder"
}

if is_installed; then
    echo "wincimg $version is in the tool cache"
    cached=true
else
    install
    echo "installed wincimg $version from $releases"
    cached=false
fi
"$folder/$program" --version
[[ -z ${GITHUB_PATH:-} ]] || runner_path "$folder" >>"$GITHUB_PATH"
[[ -z ${GITHUB_OUTPUT:-} ]] || {
    echo "version=$version"
    echo "wincimg=$(runner_path "$folder/$program")"
    echo "cached=$cached"
} >>"$GITHUB_OUTPUT"
