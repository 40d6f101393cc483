// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package linefile appends lines to a file whose lines are always whole: after a failed write,
// a full disk, and the death of the process that wrote. It knows no collector, and of the
// lines only how a file of them begins.
//
// The end of the file is in one of three states. It is whole where the last byte ends a line.
// It is torn where a write failed and could not be cut off: the next Append cuts before it
// writes. It is unknown where the file was just opened or another process changed its size:
// the file is then cut behind its last line end.
package linefile
