// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import "hash/maphash"

// Texts converts bytes to strings. It returns the same string for text that it converted a short time ago. Names,
// paths and states repeat, and a known string costs a fraction of a new one. Texts stores the last text of each hash
// value, in a table of fixed size. One goroutine may use it.
type Texts struct {
	seed  maphash.Seed
	known [knownTexts]string
	// scratch is a buffer to join texts in.
	scratch []byte
}

const (
	// knownTexts is the number of remembered texts, a power of two.
	knownTexts = 1024
	// longestKnown is the length in bytes of the longest text that is remembered. Long texts seldom
	// repeat. All remembered texts together have at most 128 KiB.
	longestKnown = 128
)

// NewTexts returns an empty table.
func NewTexts() *Texts { return &Texts{seed: maphash.MakeSeed()} }

// text returns bytes of a field as a string of valid UTF-8.
func (t *Texts) text(b []byte, of Text) string {
	if len(b) > longestKnown {
		return of.Decode(b)
	}
	known := &t.known[maphash.Bytes(t.seed, b)%knownTexts]
	if *known != string(b) {
		*known = of.Decode(b)
	}
	return *known
}

// method returns the name of a method of a class, or of a function if there is no class.
func (t *Texts) method(class, name []byte, of Text) string {
	if len(class) == 0 {
		return t.text(name, of)
	}
	t.scratch = append(append(append(t.scratch[:0], class...), '.'), name...)
	return t.text(t.scratch, of)
}
