// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tsdl

import (
	"strconv"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// kind is the kind of a token.
type kind uint8

const (
	end    kind = iota // the end of the text
	word               // a keyword or an identifier, depending on its place
	number             // an integer constant, or a character
	quoted             // a string
	sign               // any other token, one to three characters
)

// token is a token of the text.
type token struct {
	kind kind
	// text is the word, the sign, or the string without quotes and escapes.
	text  string
	value metadata.Number
	where metadata.Position
}

// described returns a description of the token for errors.
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

// maxQuotedInError is the maximum number of bytes of a string in an error.
const maxQuotedInError = 40
