// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tsdl

import (
	"strconv"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// kind is what a token is.
type kind uint8

const (
	end    kind = iota // of the text
	word               // a keyword or an identifier: which of them, the place says
	number             // an integer constant, or a character
	quoted             // a string
	sign               // anything else, one to three characters
)

// token is a token of the text.
type token struct {
	kind kind
	// text is the word, the sign, or the string without quotes and escapes.
	text  string
	value metadata.Number
	where metadata.Position
}

// described is the token as errors name it.
func (t token) described() string {
	switch t.kind {
	case end:
		return "the end of the declaration"
	case word:
		return "the word " + strconv.Quote(t.text)
	case number:
		return "the number " + t.value.String()
	case quoted:
		text := t.text
		if len(text) > maxQuotedInError {
			text = text[:maxQuotedInError] + "…"
		}
		return "the string " + strconv.Quote(text)
	}
	return strconv.Quote(t.text)
}

// maxQuotedInError is how many bytes of a string an error repeats.
const maxQuotedInError = 40
