// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"hash/maphash"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/componentkit/sharedvalue"
)

// Texts converts bytes to strings. It returns the same string for text that it converted a short time ago. Names,
// paths and states repeat, and a known string costs a fraction of a new one. Texts stores the last text of each hash
// value, in a table of fixed size. Attributes of the same text or number share it. One goroutine may use it.
type Texts struct {
	seed    maphash.Seed
	sharer  sharedvalue.Sharer
	known   [knownTexts]knownText
	numbers [knownNumbers]knownNumber
	// scratch is a buffer to join texts in.
	scratch []byte
}

// knownText is a text, and its content if an attribute had it.
type knownText struct {
	text    string
	content sharedvalue.Content
}

// knownNumber is a number of an attribute.
type knownNumber struct {
	number  int64
	content sharedvalue.Content
}

const (
	// knownTexts and knownNumbers are how many texts and numbers are remembered: powers of two.
	knownTexts      = 1024
	knownNumberBits = 10
	knownNumbers    = 1 << knownNumberBits
	// spread is an odd number without a pattern. The highest bits of its product with a number are a hash of the number.
	spread = 0x9E37_79B9_7F4A_7C15
	// longestKnown is the length in bytes of the longest text that is remembered. Long texts seldom
	// repeat. All remembered texts together have at most 128 KiB.
	longestKnown = 128
)

// NewTexts returns an empty table.
func NewTexts() *Texts { return &Texts{seed: maphash.MakeSeed(), sharer: sharedvalue.New()} }

// text returns bytes of a field as a string of valid UTF-8.
func (t *Texts) text(b []byte, of Text) string {
	if len(b) > longestKnown {
		return of.Decode(b)
	}
	return t.find(b, of).text
}

// find returns a text of at most longestKnown bytes.
func (t *Texts) find(b []byte, of Text) *knownText {
	known := &t.known[maphash.Bytes(t.seed, b)%knownTexts]
	if known.text != string(b) {
		*known = knownText{text: of.Decode(b)}
	}
	return known
}

// putText adds an attribute with bytes of a field as text.
func (t *Texts) putText(attributes pcommon.Map, key string, b []byte, of Text) {
	if len(b) > longestKnown {
		attributes.PutStr(key, of.Decode(b))
		return
	}
	t.put(attributes, key, t.find(b, of))
}

// putString adds an attribute with a text of at most longestKnown bytes.
func (t *Texts) putString(attributes pcommon.Map, key, text string) {
	known := &t.known[maphash.String(t.seed, text)%knownTexts]
	if known.text != text {
		*known = knownText{text: text}
	}
	t.put(attributes, key, known)
}

// put adds an attribute with a remembered text.
func (t *Texts) put(attributes pcommon.Map, key string, known *knownText) {
	value := attributes.PutEmpty(key)
	if known.content.IsKnown() {
		known.content.Set(value)
		return
	}
	value.SetStr(known.text)
	known.content = t.sharer.Content(value)
}

// putNumber adds an attribute with a number.
func (t *Texts) putNumber(attributes pcommon.Map, key string, n int64) {
	known, value := &t.numbers[uint64(n)*spread>>(64-knownNumberBits)], attributes.PutEmpty(key)
	if known.number == n && known.content.IsKnown() {
		known.content.Set(value)
		return
	}
	value.SetInt(n)
	known.number, known.content = n, t.sharer.Content(value)
}

// method returns the name of a method of a class, or of a function if there is no class.
func (t *Texts) method(class, name []byte, of Text) string {
	if len(class) == 0 {
		return t.text(name, of)
	}
	t.scratch = append(append(append(t.scratch[:0], class...), '.'), name...)
	return t.text(t.scratch, of)
}
