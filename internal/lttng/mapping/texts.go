// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"hash/maphash"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/xpdata"

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
	// attributes are those of the record that is being written. rendered is the value of one that may have no room.
	attributes xpdata.MapBuilder
	rendered   pcommon.Value
}

// knownText is a text, and its content if an attribute had it.
type knownText struct {
	text    string
	content sharedvalue.Content
}

// set sets a value to the text.
func (k *knownText) set(value pcommon.Value, sharer sharedvalue.Sharer) {
	if k.content.IsKnown() {
		k.content.Set(value)
		return
	}
	value.SetStr(k.text)
	k.content = sharer.Content(value)
}

// knownNumber is a number of an attribute.
type knownNumber struct {
	number  int64
	content sharedvalue.Content
}

// set sets a value to a number, which is remembered in place of the last one.
func (k *knownNumber) set(value pcommon.Value, n int64, sharer sharedvalue.Sharer) {
	if k.number == n && k.content.IsKnown() {
		k.content.Set(value)
		return
	}
	value.SetInt(n)
	k.number, k.content = n, sharer.Content(value)
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
func NewTexts() *Texts {
	return &Texts{seed: maphash.MakeSeed(), sharer: sharedvalue.New(), rendered: pcommon.NewValueEmpty()}
}

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

// setText sets a value to bytes of a field as text.
func (t *Texts) setText(value pcommon.Value, b []byte, of Text) {
	if len(b) > longestKnown {
		value.SetStr(of.Decode(b))
		return
	}
	t.find(b, of).set(value, t.sharer)
}

// setNumber sets a value to a number.
func (t *Texts) setNumber(value pcommon.Value, n int64) {
	t.numbers[uint64(n)*spread>>(64-knownNumberBits)].set(value, n, t.sharer)
}

// method returns the name of a method of a class, or of a function if there is no class.
func (t *Texts) method(class, name []byte, of Text) string {
	if len(class) == 0 {
		return t.text(name, of)
	}
	t.scratch = append(append(append(t.scratch[:0], class...), '.'), name...)
	return t.text(t.scratch, of)
}
