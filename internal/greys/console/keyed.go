// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"strings"
)

// keyedSeparator stands between a name and its value, in lines such as
//
//	modifier : static
//	    type : int
//
// where names end in one column, and a value's further lines stand below the first.
const keyedSeparator = " :"

// keyed cuts a line whose names end in a column: it has a name, or it has none and goes on
// with a value. The value begins behind a space, which is not there where it is empty.
func keyed(line []byte, width int) (name, value []byte, ok bool) {
	separator := line
	if len(line) < width+len(keyedSeparator) {
		if len(bytes.Trim(line, " ")) > 0 {
			return nil, nil, false
		}
		return nil, nil, true
	}
	name, separator = bytes.TrimLeft(line[:width], " "), line[width:]
	value = separator[len(keyedSeparator):]
	if len(value) > 0 {
		if value[0] != ' ' {
			return nil, nil, false
		}
		value = value[1:]
	}
	switch sep := string(separator[:len(keyedSeparator)]); {
	case len(name) > 0 && sep == keyedSeparator, len(name) == 0 && sep == "  ":
		return name, value, true
	}
	return nil, nil, false
}

// beginsKeyed reports whether a line of names that end in a column is no rest of another.
func beginsKeyed(line []byte, width int) bool {
	_, _, ok := keyed(line, width)
	return ok
}

// keyedText is such lines as the server makes them: pairs of name and value, which may have
// lines. Width is that of values; 0: any.
func keyedText(width int, pairs ...[2]string) string {
	longest := 0
	for _, p := range pairs {
		longest = max(longest, len(p[0]))
	}
	var b strings.Builder
	for _, p := range pairs {
		name, separator := p[0], keyedSeparator
		for _, line := range valueLines(p[1], width) {
			text := strings.Repeat(" ", longest-len(name)) + name + separator + " " + line
			text = strings.TrimRight(text, " ")
			if text == "" {
				text = " "
			}
			b.WriteString(text + "\n")
			name, separator = "", "  "
		}
	}
	return b.String()
}

// valueLines are the lines of a value, at least one.
func valueLines(value string, width int) (all []string) {
	t := utf16Of(value)
	if width > 0 {
		t = wrapped(t, width)
	}
	for _, line := range lines(t) {
		all = append(all, encoded(line))
	}
	if len(all) == 0 {
		all = []string{""}
	}
	return all
}
