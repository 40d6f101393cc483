// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

// Filter is an expression that records have to fulfil, in the language of LTTng. The
// zero value is none. Agents don't look at it, but for telling the application of it
// where that has asked for it: filters are the session daemon's work.
type Filter struct{ text string }

// MaxFilter is the length in bytes of the longest filter, as LTTng's own daemon has it.
const MaxFilter = 1<<16 - 2

// ParseFilter returns the filter of a text of at most MaxFilter bytes in UTF-8, without
// a NUL, and without blanks or control characters at its ends. The text is not parsed.
func ParseFilter(text string) (Filter, error) {
	if err := checkText("a filter", text, MaxFilter); err != nil {
		return Filter{}, err
	}
	return Filter{text}, nil
}

func (f Filter) String() string { return f.text }
