// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"fmt"
	"strconv"
	"strings"
)

// Style is a way of writing data that have several valid forms.
type Style uint8

// The styles.
const (
	// Documented writes numbers and booleans as strings, like the document's samples.
	Documented Style = iota
	// Typed writes them as JSON numbers and booleans.
	Typed
	// Sloppy is Documented with two features of some samples that JSON does not allow: a comma behind the last element,
	// and single quotes around strings that contain double quotes.
	Sloppy
)

// object writes a JSON object or array.
type object struct {
	to    []byte
	style Style
	// more means that an element was written.
	more bool
}

func (o *object) comma() {
	if o.more {
		o.to = append(o.to, ',')
	}
	o.more = true
}

// key begins a member.
func (o *object) key(key string) {
	o.comma()
	o.to = append(appendText(o.to, key), ':')
}

func (o *object) text(key, value string) {
	o.key(key)
	o.value(value)
}

func (o *object) value(text string) {
	if o.style == Sloppy && strings.Contains(text, "\"") && !strings.ContainsFunc(text, func(r rune) bool { return r == '\'' || r < ' ' || r == 0x7f }) {
		o.to = append(append(append(o.to, '\''), text...), '\'')
		return
	}
	o.to = appendText(o.to, text)
}

func (o *object) number(key string, value int64) { o.typed(key, strconv.FormatInt(value, 10)) }

func (o *object) boolean(key string, value bool) { o.typed(key, strconv.FormatBool(value)) }

// typed adds a number or a boolean.
func (o *object) typed(key, literal string) {
	if o.style != Typed {
		o.text(key, literal)
		return
	}
	o.key(key)
	o.to = append(o.to, literal...)
}

// within writes an object or array in place of a value.
func (o *object) within(brackets string, write func()) {
	o.to = append(o.to, brackets[0])
	o.more = false
	write()
	if o.more && o.style == Sloppy {
		o.to = append(o.to, ',')
	}
	o.to = append(o.to, brackets[1])
	o.more = true
}

// array adds a member that is an array of so many elements.
func (o *object) array(key string, elements int, write func(i int)) {
	o.key(key)
	o.within("[]", func() {
		for i := range elements {
			o.comma()
			write(i)
		}
	})
}

// texts adds a member that is an array of texts.
func (o *object) texts(key string, texts []string) {
	o.array(key, len(texts), func(i int) { o.value(texts[i]) })
}

// millis returns a duration in milliseconds, with a fraction if there is one.
func millis(nanos int64) string {
	if nanos%1e6 == 0 {
		return strconv.FormatInt(nanos/1e6, 10)
	}
	return strings.TrimRight(fmt.Sprintf("%d.%06d", nanos/1e6, nanos%1e6), "0")
}
