#!/bin/sh
# Builds the shim's executable and puts it, with its SHA-256, into images/shim.
#   images/shim/build.sh          build and replace
#   images/shim/build.sh --check  build, compare with what is there, change nothing
# The same source, toolchain (rust-toolchain.toml) and mingw-w64 (the versions in
# images/shim/built-with) give the same bytes, wherever the source lies.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
kept=$root/images/shim
target=x86_64-pc-windows-gnu
built=${CARGO_TARGET_DIR:-$root/target}/$target/shim/wincimg-shim.exe

built_with() {
    (cd "$root" && rustc --version)
    x86_64-w64-mingw32-ld --version | head -n 1
}

cd "$root"
env -u RUSTFLAGS -u CARGO_ENCODED_RUSTFLAGS -u CARGO_BUILD_RUSTFLAGS \
    cargo build --quiet --locked --package wincimg-shim --bin wincimg-shim \
    --profile shim --target $target

case ${1-} in
--check)
    if cmp "$built" "$kept/shim.exe" && (cd "$kept" && sha256sum --quiet --check shim.exe.sha256); then
        echo "images/shim/shim.exe is what its source builds"
        exit
    fi
    echo "images/shim/shim.exe is not what its source builds; run images/shim/build.sh and commit" >&2
    if ! built_with | diff "$kept/built-with" - >&2; then
        echo "but it was built with other tools (above), which alone can make the difference" >&2
    fi
    exit 1
    ;;
"")
    cp "$built" "$kept/shim.exe"
    chmod 644 "$kept/shim.exe"
    (cd "$kept" && sha256sum shim.exe >shim.exe.sha256)
    built_with >"$kept/built-with"
    ls -l "$kept/shim.exe"
    ;;
*)
    echo "usage: images/shim/build.sh [--check]" >&2
    exit 2
    ;;
esac
