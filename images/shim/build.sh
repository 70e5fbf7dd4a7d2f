#!/bin/sh
# Builds the executables for Windows and puts them, with their SHA-256, into images/shim: shim.exe, the
# entry point, and start.exe, with which `wincimg image try` starts an image's program.
#   images/shim/build.sh          build and replace
#   images/shim/build.sh --check  build, compare with what is there, change nothing
# The same source, toolchain (rust-toolchain.toml) and mingw-w64 (the versions in
# images/shim/built-with) give the same bytes, wherever the source lies.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
kept=$root/images/shim
target=x86_64-pc-windows-gnu
built=${CARGO_TARGET_DIR:-$root/target}/$target/shim

built_with() {
    (cd "$root" && rustc --version)
    x86_64-w64-mingw32-ld --version | head -n 1
}

cd "$root"
env -u RUSTFLAGS -u CARGO_ENCODED_RUSTFLAGS -u CARGO_BUILD_RUSTFLAGS \
    cargo build --quiet --locked --package wincimg-shim --bins --profile shim --target $target

case ${1-} in
--check)
    if cmp "$built/wincimg-shim.exe" "$kept/shim.exe" &&
        cmp "$built/wincimg-start.exe" "$kept/start.exe" &&
        (cd "$kept" && sha256sum --quiet --check shim.exe.sha256 start.exe.sha256); then
        echo "images/shim/shim.exe and start.exe are what their source builds"
        exit
    fi
    echo "images/shim is not what its source builds; run images/shim/build.sh and commit" >&2
    if ! built_with | diff "$kept/built-with" - >&2; then
        echo "but it was built with other tools (above), which alone can make the difference" >&2
    fi
    exit 1
    ;;
"")
    for name in shim start; do
        cp "$built/wincimg-$name.exe" "$kept/$name.exe"
        chmod 644 "$kept/$name.exe"
        (cd "$kept" && sha256sum $name.exe >$name.exe.sha256)
    done
    built_with >"$kept/built-with"
    ls -l "$kept"/*.exe
    ;;
*)
    echo "usage: images/shim/build.sh [--check]" >&2
    exit 2
    ;;
esac
