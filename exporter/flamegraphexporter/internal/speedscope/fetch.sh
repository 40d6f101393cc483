#!/bin/sh
# Copyright The Callbraid Authors
# SPDX-License-Identifier: Apache-2.0

# Fetches the release of speedscope that the flame_graph exporter serves, and the licences of the libraries in it, with
# npm. It fails if a package differs from its checksum below, or if a file differs from SHA256SUMS.
#
#   ./fetch.sh          fetches the files and checks them
#   ./fetch.sh --sums   writes SHA256SUMS instead of checking: for a new version, after its checksum below was changed
#
# A new version: set its version and checksum (npm view speedscope@VERSION dist.integrity), take the versions of the
# libraries from its package.json, and run the script with --sums.
set -eu

speedscope=speedscope@1.25.0
speedscope_sha512=cpf9HWTZf1ijLXBJrk87Ve/54tnYx6rlf0gUThvn3ook6h63hLXVOQiMf44PT+XoV503cPfvfiT5gP5vojp6Ag==

# The libraries that are compiled into speedscope's script.
libraries='preact@10.4.1 aphrodite@2.1.0 inline-style-prefixer@4.0.2 css-in-js-utils@2.0.1 asap@2.0.6 string-hash@1.1.3
pako@1.0.6 protobufjs@6.8.8 long@4.0.0 uint8array-json-parser@0.0.2 jfrview@0.2.0 source-map@0.6.1'

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# unpack PACKAGE@VERSION: unpacks a package into its own folder, whose name it prints.
unpack() {
  mkdir "$1"
  archive=$(npm pack --silent "$1")
  tar -xzf "$archive" -C "$1" --strip-components 1 2>/dev/null
  echo "$archive"
}

archive=$(unpack "$speedscope")
sum=$(openssl dgst -sha512 -binary "$archive" | base64 -w0)
if [ "$sum" != "$speedscope_sha512" ]; then
  echo "$speedscope: expected the SHA-512 sum $speedscope_sha512, got $sum" >&2
  exit 1
fi

rm -rf "$here/release" "$here/licences.txt"
mkdir "$here/release"
cp "$speedscope"/dist/release/* "$here/release"
# The example and the importer of Java Flight Recorder need a third of the space, and no page of ours leads to them. The
# scripts favicon-*.js are not used.
rm "$here"/release/perf-vertx-stacks-* "$here"/release/jfrview_bg-*.wasm "$here"/release/favicon-*.js \
  "$here"/release/file-format-schema.json "$here"/release/source-code-pro.LICENSE.md
{
  printf '==== %s: LICENSE\n\n' "$speedscope"
  cat "$speedscope/LICENSE"
  printf '\n==== The font Source Code Pro: source-code-pro.LICENSE.md\n\n'
  cat "$speedscope/dist/release/source-code-pro.LICENSE.md"
  for library in $libraries; do
    unpack "$library" >/dev/null
    file=$(find "$library" -maxdepth 1 -iname 'licen[cs]e*')
    if [ -n "$file" ]; then
      printf '\n==== %s: LICENSE\n\n' "$library"
      cat "$file"
    else
      printf '\n==== %s: no licence file; its package.json says\n\n' "$library"
      grep -E '"(license|author|repository|homepage)"' "$library/package.json"
    fi
  done
} >"$here/licences.txt"

cd "$here"
if [ "${1:-}" = --sums ]; then
  sha256sum licences.txt release/* >SHA256SUMS
else
  sha256sum --check --quiet SHA256SUMS
fi
