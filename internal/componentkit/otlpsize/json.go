// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package otlpsize

const (
	// ofObject is the size of the largest message that {} can become, in bytes.
	ofObject = 220
	// ofComma is the largest size of an element in a list of numbers or texts, in bytes.
	ofComma = ofTexts
	// bracketsOfLevel is the number of brackets of one level of nesting in JSON:
	// {"kvlistValue":{"values":[{"value":. A level of lists has three.
	bracketsOfLevel = 4
	// bracketsAround are those of the messages around a value, with some to spare.
	bracketsAround = 20
)

// JSON walks a request in JSON, whose values may have most levels. It knows no messages: it
// counts brackets outside of strings, so up to a third more levels of lists are accepted, and
// Bytes is an upper bound, up to six times the truth. The error is nil or [ErrDepth].
func JSON(body []byte, most int) (size Size, err error) {
	depth, inText := 0, false
	size.Bytes = len(body)
	for i := 0; i < len(body); i++ {
		b := body[i]
		if inText {
			switch b {
			case '\\':
				i++
			case '"':
				inText = false
			}
			continue
		}
		switch b {
		case '"':
			inText = true
		case ',':
			size.Bytes += ofComma
		case '{', '[':
			if b == '{' {
				size.Bytes += ofObject
			}
			depth++
			size.Depth = max(size.Depth, depth)
			if depth > bracketsAround+bracketsOfLevel*most {
				return size, ErrDepth
			}
		case '}', ']':
			depth--
		}
	}
	return size, nil
}
