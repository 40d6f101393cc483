// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package treeformat writes call trees, and kept traces, in the formats of programs
// that show them: profiles of pprof, folded stacks, speedscope's files, and Chrome's
// trace events, which Perfetto reads.
//
// It knows how the formats are laid out and what they cannot hold; it knows no server,
// and not where trees come from. Names come from telemetry and can be anything: see
// [Printable]. Formats that write a stack for each path grow with the depth of the tree,
// too, so they get it cut: see [Reduce].
package treeformat
