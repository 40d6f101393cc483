// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package recordfile appends records to a file whose records are always whole: after a failed write, a
// full disk, and the death of the writing process. It does not know the content of records: its user
// says how a file begins, and where the last whole record ends.
//
// The end of the file is in one of three states. It is whole if the last byte ends a record. It is
// torn if a write failed and could not be cut off: the next Append cuts before it writes. It is
// unknown if the file was just opened or another process changed its size: the file is then cut
// behind its last whole record.
package recordfile
