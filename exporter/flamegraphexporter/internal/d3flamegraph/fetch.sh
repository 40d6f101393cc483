#!/bin/sh
# Copyright The Callbraid Authors
# SPDX-License-Identifier: Apache-2.0

# Fetches the scripts that draw the flame graphs of the flame_graph exporter, and the licences of the libraries in them,
# with npm. It fails if a package differs from its checksum below, or if a file differs from SHA256SUMS.
#
#   ./fetch.sh          fetches the files and checks them
#   ./fetch.sh --sums   writes SHA256SUMS instead of checking: for a new version, after its checksum below was changed
#
# A new version: set its version and checksum (npm view d3-flame-graph@VERSION dist.integrity), also in d3flamegraph.go,
# and run the script with --sums.
set -eu

flamegraph=d3-flame-graph@4.1.3
flamegraph_sha512=NijuhJZhaTMwobVgwGQ67x9PovqMMHXBbs0FMHEGJvsWZGuL4M7OsB03v8mHdyVyHhnQYGsYnb5w021e9+R+RQ==
selection=d3-selection@3.0.0
selection_sha512=fmTRWbNMmsmWq6xJV8D19U/gw/bwrHfNXxrIN+HfZgnzqTHp9jOmKMhsTUjXOJnZOdZY9Q28y4yebKzqDKlxlQ==

# The libraries that are compiled into the script of d3-flame-graph, beside d3-selection.
libraries='d3-array@3.2.4 d3-color@3.1.0 d3-dispatch@3.0.1 d3-ease@3.0.1 d3-format@3.1.0 d3-hierarchy@3.1.2
d3-interpolate@3.0.1 d3-scale@4.0.2 d3-timer@3.0.1 d3-transition@3.0.1 internmap@2.0.3'

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# unpack PACKAGE@VERSION: unpacks a package into its own folder, and prints the name of its archive.
unpack() {
  mkdir "$1"
  archive=$(npm pack --silent "$1")
  tar -xzf "$archive" -C "$1" --strip-components 1
  echo "$archive"
}

# unpack_checked PACKAGE@VERSION SUM: the same, if the archive has the sum.
unpack_checked() {
  archive=$(unpack "$1")
  sum=$(openssl dgst -sha512 -binary "$archive" | base64 -w0)
  if [ "$sum" != "$2" ]; then
    echo "$1: expected the SHA-512 sum $2, got $sum" >&2
    exit 1
  fi
}

unpack_checked "$flamegraph" "$flamegraph_sha512"
unpack_checked "$selection" "$selection_sha512"

rm -rf "$here/release" "$here/licences.txt"
mkdir "$here/release"
cp "$flamegraph/dist/d3-flamegraph.min.js" "$here/release/d3-flamegraph-${flamegraph#*@}.min.js"
cp "$selection/dist/d3-selection.min.js" "$here/release/d3-selection-${selection#*@}.min.js"
printf '%s\n' "$flamegraph" "$selection" >"$here/release/release.txt"
{
  for library in "$flamegraph" "$selection"; do
    printf '==== %s: LICENSE\n\n' "$library"
    cat "$library/LICENSE"
    echo
  done
  for library in $libraries; do
    unpack "$library" >/dev/null
    printf '==== %s: LICENSE\n\n' "$library"
    cat "$library/LICENSE"
    echo
  done
} >"$here/licences.txt"

cd "$here"
if [ "${1:-}" = --sums ]; then
  sha256sum licences.txt release/* >SHA256SUMS
else
  sha256sum --check --quiet SHA256SUMS
fi
