// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

// Pattern is the name of a logger, or of many: a * stands for any text, including none. A backslash before a * or a
// backslash makes it literal. Agents before LTTng 2.11 support a * only at the end, and no backslash. Python's agent
// ignores names.
//
// The zero value is the empty name, which is that of java.util.logging's root logger.
//
// Agents count: two Enable need two Disable with the same text.
type Pattern struct{ text string }

// nameFieldSize is the size in bytes of the field of a pattern, which ends with a NUL.
const nameFieldSize = 256

// MaxPattern is the maximum length of a pattern in bytes.
const MaxPattern = nameFieldSize - 1

// ParsePattern returns the pattern of a text of at most MaxPattern bytes in UTF-8,
// without a NUL, and without blanks or control characters at its ends.
func ParsePattern(text string) (Pattern, error) {
	if err := checkText("the name of a logger", text, MaxPattern); err != nil {
		return Pattern{}, err
	}
	return Pattern{text}, nil
}

func (p Pattern) String() string { return p.text }
