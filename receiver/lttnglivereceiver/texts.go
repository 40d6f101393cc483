// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import "hash/maphash"

// texts makes strings of text, and of text that comes again soon the same string:
// names, paths and states do, and a string that is there costs a fraction of one that
// is made. It remembers the last text of each hash value, so what never comes again
// costs a hash more and keeps nothing but its place. It is for one goroutine.
type texts struct {
	seed  maphash.Seed
	known [knownTexts]string
	// scratch is space to put texts together in.
	scratch []byte
}

const (
	// knownTexts is how many are remembered, a power of two.
	knownTexts = 1024
	// longestKnown is from how many bytes on texts are not remembered: what is long
	// seldom comes again, and together they are at most 128 KiB.
	longestKnown = 128
)

func newTexts() *texts { return &texts{seed: maphash.MakeSeed()} }

// text is b as a string of UTF-8.
func (t *texts) text(b []byte) string {
	if len(b) > longestKnown {
		return validString(b)
	}
	known := &t.known[maphash.Bytes(t.seed, b)%knownTexts]
	if *known != string(b) {
		*known = validString(b)
	}
	return *known
}

// method is the name of a method of a class, or of a function where there is no class.
func (t *texts) method(class, name []byte) string {
	if len(class) == 0 {
		return t.text(name)
	}
	t.scratch = append(append(append(t.scratch[:0], class...), '.'), name...)
	return t.text(t.scratch)
}
