// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package linefile appends lines to a file whose lines are always whole: after a failed write, a
// full disk, and the death of the writing process. It knows no collector, and checks only how the
// first line of a file begins.
//
// The end of the file is in one of three states. It is whole if the last byte ends a line. It is
// torn if a write failed and could not be cut off: the next Append cuts before it writes. It is
// unknown if the file was just opened or another process changed its size: the file is then cut
// behind its last line end.
package linefile
