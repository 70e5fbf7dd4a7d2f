#!/bin/sh
# Builds an image and pushes it. Exit code as of build: 0 done, 1 the answer is no, 2 wrong usage, 3
# failed.
#
# Environment: NAME (HOST/NAME:TAG; by default the first of TAGS) and, with lists separated by spaces or
# line ends: IMAGE (a recipe, a Dockerfile, or a folder), HOST_BUILDS, NODES, BASE_REGISTRY, SBOM,
# PROVENANCE, PUSH, ARGS, REPORT, WINCIMG. With one value a line, which may have spaces: TAGS (further
# names), BUILD_ARGS, LABELS.
set -euf

wincimg=${WINCIMG:-wincimg}
report=${REPORT:-wincimg-report}
# An image may contain the folder: nothing of an earlier build may be in it.
rm -f "$report/metadata.json" "$report/digest" "$report/reference"
if [ -f "$report/image/oci-layout" ]; then rm -rf "$report/image"; fi
rmdir "$report" 2>/dev/null || true
metadata=$(mktemp)
trap 'rm -f "$metadata"' EXIT
# The lines of a list, without spaces and carriage returns at their ends.
lines() { printf '%s\n' "$1" | sed 's/^[[:space:]]*//; s/[[:space:]]*$//'; }
IFS='
'
for name in $(lines "${TAGS:-}"); do NAME=${NAME:-$name}; done
set -- build "${IMAGE:-.}" -t "${NAME:?set NAME to HOST/NAME:TAG}" \
  --metadata-file "$metadata"
for name in $(lines "${TAGS:-}"); do
  if [ "${PUSH:-true}" = true ] && [ "$name" != "$NAME" ]; then set -- "$@" -t "$name"; fi
done
for value in $(lines "${BUILD_ARGS:-}"); do set -- "$@" --build-arg "$value"; done
for value in $(lines "${LABELS:-}"); do set -- "$@" --label "$value"; done
unset IFS
for build in $(lines "${HOST_BUILDS:-}"); do set -- "$@" --host-build "$build"; done
for form in $(lines "${SBOM:-}"); do set -- "$@" "--sbom=$form"; done
if [ -n "${NODES:-}" ]; then set -- "$@" --nodes "$NODES"; fi
if [ -n "${BASE_REGISTRY:-}" ]; then set -- "$@" --base-registry "$BASE_REGISTRY"; fi
if [ "${PROVENANCE:-false}" = true ]; then set -- "$@" --provenance; fi
if [ "${PUSH:-true}" = true ]; then set -- "$@" --push; else set -- "$@" --output "oci:$report/image"; fi
code=0
# Words of further flags.
# shellcheck disable=SC2046
"$wincimg" "$@" $(lines "${ARGS:-}") || code=$?
digest=$(sed -n 's/^ *"containerimage.digest": "\(.*\)",*$/\1/p' "$metadata")
# If some hosts have no image, those of the others are published.
if [ -z "$digest" ]; then exit "$code"; fi
mkdir -p "$report"
cat "$metadata" > "$report/metadata.json"

image=${NAME%@*}
case ${image##*/} in *:*) repository=${image%:*} ;; *) repository=$image ;; esac
reference=$repository@$digest
printf '%s' "$digest" > "$report/digest"
printf '%s' "$reference" > "$report/reference"

if [ -n "${GITHUB_OUTPUT:-}" ]; then
  printf '%s\n' "digest=$digest" "reference=$reference" "metadata=$report/metadata.json" >> "$GITHUB_OUTPUT"
fi
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
  pushed=built
  if [ "${PUSH:-true}" = true ]; then pushed=pushed; fi
  # Markdown's quotes, not the shell's.
  # shellcheck disable=SC2016
  printf '| Image | %s as |\n| --- | --- |\n| `%s` | `%s` |\n' "$pushed" "$NAME" "$reference" >> "$GITHUB_STEP_SUMMARY"
fi
exit "$code"
