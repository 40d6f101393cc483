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
// All names end in one column. Further lines of a value stand below its first line.
const keyedSeparator = " :"

// keyed splits a line whose names end in a column. A line without a name continues a value. A space stands before the
// value, unless the value is empty.
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

// beginsKeyed reports whether a line has the form of such a line, so that it does not continue another line.
func beginsKeyed(line []byte, width int) bool {
	_, _, ok := keyed(line, width)
	return ok
}

// keyedText returns such lines as the server writes them. Values can have many lines. Width is the width of a line of a
// value; 0 means any.
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

// valueLines returns the lines of a value, at least one.
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
