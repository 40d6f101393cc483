// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import "strings"

const (
	// maxAttributes is how many attributes a record, and members a map in it, may have.
	maxAttributes = 1024
	// maxNameBytes is how long names may be: of events, attributes, loggers, functions,
	// files and threads.
	maxNameBytes = 4 * kib
)

// recordSize is how large a log record has become of what it may have at most, and how
// many of its values were left out or cut, because they are too large: exporters and what
// they send to refuse more than a few MiB, and a packet of a few bytes can have a value
// that takes many as a record has it.
type recordSize struct{ bytes, most, leftOut int }

// take takes so many bytes more, and reports whether there was room for them.
func (s *recordSize) take(n int) bool {
	s.bytes += n
	return s.bytes <= s.most
}

// leaveOut notes that a value is left out, before which the record had so many bytes.
func (s *recordSize) leaveOut(bytes int) {
	s.bytes = bytes
	s.leftOut++
}

// name is a name that is not too long.
func (s *recordSize) name(b []byte) []byte {
	if len(b) > maxNameBytes {
		s.leftOut++
		b = b[:maxNameBytes]
	}
	s.bytes += len(b)
	return b
}

// text is a text that is not too long for what has room yet.
func (s *recordSize) text(text string) string {
	if most := max(0, s.most-s.bytes); len(text) > most {
		s.leftOut++
		text = strings.ToValidUTF8(strings.Clone(text[:most]), "")
	}
	s.bytes += len(text)
	return text
}
