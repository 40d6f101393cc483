// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import "strings"

const (
	// maxAttributes is the maximum number of attributes of a record, and of members of a map in it.
	maxAttributes = 1024
	// MaxNameBytes is the maximum length of the names of events, attributes, loggers, functions, files
	// and threads.
	MaxNameBytes = 4 << 10

	// recordBytes and valueBytes are the approximate sizes in memory of a record and of one of its
	// attributes, without their texts.
	recordBytes = 200
	valueBytes  = 64
)

// RecordSize is the size of a log record while it is written. Exporters and their peers refuse
// records of more than a few MiB, and a small packet can hold a value that is large in a record.
type RecordSize struct {
	// Bytes is the approximate size of the record in memory.
	Bytes int
	most  int
	// LeftOut is the number of values that were omitted or truncated because the record was full.
	LeftOut int
}

// reserve adds n bytes to the record, and reports whether the record has room for them.
func (s *RecordSize) reserve(n int) bool {
	s.Bytes += n
	return s.Bytes <= s.most
}

// leaveOut counts an omitted value. The record had this many bytes before the value.
func (s *RecordSize) leaveOut(bytes int) {
	s.Bytes = bytes
	s.LeftOut++
}

// name returns a name, cut to MaxNameBytes, and counts its bytes.
func (s *RecordSize) name(b []byte) []byte {
	if len(b) > MaxNameBytes {
		s.LeftOut++
		b = b[:MaxNameBytes]
	}
	s.Bytes += len(b)
	return b
}

// text returns a text, cut to the room that the record still has, and counts its bytes.
func (s *RecordSize) text(text string) string {
	if most := max(0, s.most-s.Bytes); len(text) > most {
		s.LeftOut++
		text = strings.ToValidUTF8(strings.Clone(text[:most]), "")
	}
	s.Bytes += len(text)
	return text
}
