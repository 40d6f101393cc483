// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package calltree folds spans, and stacks of profiles, into call trees: for each
// path of calls how many there were, how many failed, and what time they took. It
// knows no collector and no format that trees are shown in.
package calltree
