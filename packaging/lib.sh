# Shared functions of the scripts in this folder. Sourced at the root of the repository.

fail() {
    echo "${0##*/}: $*" >&2
    exit 1
}

need() { # PROGRAM PACKAGE
    command -v "$1" >/dev/null || fail "$1 is missing; on Debian: apt-get install $2"
}

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
profile=${WINCIMG_PROFILE:-dist}
target_dir=$(realpath -m "${CARGO_TARGET_DIR:-target}")
# Output folder of a Cargo profile.
profile_dir=$profile
[[ $profile != dev ]] || profile_dir=debug
static_targets=(x86_64-unknown-linux-musl aarch64-unknown-linux-musl)

# The time in all artefacts: the commit's, so that the same source gives the same bytes.
if [[ -z ${SOURCE_DATE_EPOCH-} ]]; then
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null) ||
        fail "no clone of git here: set SOURCE_DATE_EPOCH to the time of the source, in seconds"
fi
if [[ -z ${WINCIMG_COMMIT-} ]]; then
    WINCIMG_COMMIT=$(git rev-parse --short=12 HEAD 2>/dev/null) ||
        fail "no clone of git here: set WINCIMG_COMMIT to the source's commit"
fi
export SOURCE_DATE_EPOCH WINCIMG_COMMIT
export LC_ALL=C TZ=UTC
umask 022

# Removes the machine's paths from programs, where panics and C's assert would print them.
no_paths() { # TARGET [C_FLAG…]
    local from to home=${CARGO_HOME:-$HOME/.cargo} rust=() c=()
    # The last match counts, and the target folder may be inside the repository.
    for pair in "$home=/cargo" "$PWD=/wincimg" "$target_dir=/target"; do
        from=${pair%=*} to=${pair##*=}
        rust+=("--remap-path-prefix=$from=$to")
        c+=("-ffile-prefix-map=$from=$to")
    done
    c+=("${@:2}")
    local upper=${1^^}
    export "CARGO_TARGET_${upper//-/_}_RUSTFLAGS=${rust[*]}"
    export "CFLAGS_${1//-/_}=${c[*]}"
}

# Packs a folder as a tar.gz whose bytes depend only on its contents.
pack_tar() { # FOLDER NAME FILE
    tar --create --directory="$1" --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" \
        --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX "$2" |
        gzip -9n >"$3.part"
    mv "$3.part" "$3"
}

# The program that writes manuals, licences and images.
make_with() {
    if [[ -n ${WINCIMG_PACKAGING-} ]]; then
        "$WINCIMG_PACKAGING" "$@"
    else
        cargo run --locked --quiet --package wincimg-packaging -- "$@"
    fi
}

# Unpacks the archive of a target from the folder of artefacts.
unpack() { # OUT TARGET FOLDER
    local archive=$1/wincimg-$version-$2.tar.gz
    [[ -f $archive ]] || fail "$archive is missing: make it with packaging/binaries $1 $2"
    tar --extract --file="$archive" --directory="$3" --strip-components=1
}
