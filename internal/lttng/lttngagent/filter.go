// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

// Filter is an expression in the language of LTTng that selects records. The zero value selects all. Agents ignore
// it, except that they report it to applications that request this: filtering is the session daemon's task.
type Filter struct{ text string }

// MaxFilter is the maximum length of a filter in bytes. LTTng's own daemon has the same.
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
