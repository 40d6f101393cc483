// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package treeformat writes call trees and kept traces as files for other programs: profiles of
// pprof, folded stacks, and speedscope's files.
//
// It knows the formats and their limits. It knows no server, and no source of trees. Names are from
// telemetry and can be any text: see [Printable]. Formats with a stack for each path also grow with
// the depth of the tree, so callers reduce the tree first: see [Reduce].
package treeformat
