// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

// Pattern is the name of a logger, or of many: a * stands for any text, also none. A
// backslash in front of a * or of a backslash takes its meaning away. Agents older than
// LTTng 2.11 know a * at the end alone, and no backslash; Python's agent takes no notice
// of names at all.
//
// The zero value is the empty name, which is that of java.util.logging's root logger.
//
// Agents count: what was enabled twice has to be disabled twice, by the same text.
type Pattern struct{ text string }

// nameFieldSize is the size in bytes of the field that a pattern is sent in, which ends
// with a NUL.
const nameFieldSize = 256

// MaxPattern is the length in bytes of the longest pattern.
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
