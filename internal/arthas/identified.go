// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthas

import (
	"fmt"
	"strings"
)

// A watched value can have the IDs of the trace and the span that the call belongs to. Results have no place for them. So
// the command's value is a list of three: {(trace ID),(span ID),(value)}. The server draws it in lines:
//
//	@ArrayList[
//	    @String[4bf92f3577b34da6a3ce929d0e0e4736],
//	    @String[00f067aa0ba902b7],
//	    @ArrayList[
//	        @Integer[1],
//	    ],
//	]
//
// A text has no line break of its own there, so the first two lines are the IDs with any value.

// identified returns the value of a command with IDs, and the depth of it.
func (c WatchCommand) identified() (value Expression, depth int32, err error) {
	if c.TraceID == (Expression{}) {
		return c.Value, c.Depth, nil
	}
	const none = "null"
	texts := [3]string{none, none, none}
	for i, part := range []Expression{c.TraceID, c.SpanID, c.Value} {
		if part == (Expression{}) {
			continue
		}
		if err := part.checkBalanced(); err != nil {
			return Expression{}, 0, err
		}
		texts[i] = part.text
	}
	return Expression{fmt.Sprintf("{(%s),(%s),(%s)}", texts[0], texts[1], texts[2])}, max(c.Depth, 1) + 1, nil
}

// checkBalanced returns an error if a bracket or a quotation mark of the expression has no counterpart: then it could end
// the bracket around it.
func (e Expression) checkBalanced() error {
	const opening, closing = "([{", ")]}"
	var open []byte
	quote := byte(0)
	for i := 0; i < len(e.text); i++ {
		c := e.text[i]
		switch {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"' || c == '`':
			quote = c
		case strings.IndexByte(opening, c) >= 0:
			open = append(open, closing[strings.IndexByte(opening, c)])
		case strings.IndexByte(closing, c) >= 0:
			if len(open) == 0 || open[len(open)-1] != c {
				return fmt.Errorf("expression %q has %q at byte %d without its counterpart", e.text, c, i)
			}
			open = open[:len(open)-1]
		}
	}
	if quote != 0 {
		return fmt.Errorf("expression %q has no second %q", e.text, quote)
	}
	if len(open) > 0 {
		return fmt.Errorf("expression %q has no %q at its end", e.text, open[len(open)-1])
	}
	return nil
}

// Identified returns the IDs of a watched value of a command with IDs, and the rest of the value. An ID is empty if the
// program has none. It is not ok if the server has drawn no such list: for example because its texts are JSON. A value that
// was cut has no end.
func (w *Watch) Identified() (traceID, spanID, value string, ok bool) {
	const begin, end, indent = "@ArrayList[\n", ",\n]", "    "
	rest, isList := strings.CutPrefix(w.Value, begin)
	if !isList {
		return "", "", "", false
	}
	var ids [2]string
	for i := range ids {
		var line string
		if line, rest, ok = strings.Cut(rest, "\n"); !ok {
			return "", "", "", false
		}
		if ids[i], ok = drawnText(strings.TrimPrefix(line, indent)); !ok {
			return "", "", "", false
		}
	}
	lines := strings.Split(strings.TrimSuffix(rest, end), "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], indent)
	}
	return ids[0], ids[1], strings.Join(lines, "\n"), true
}

// drawnText returns the text of a line such as @String[text], or nothing for null.
func drawnText(line string) (text string, ok bool) {
	if line == "null," {
		return "", true
	}
	text, isText := strings.CutPrefix(line, "@String[")
	text, isWhole := strings.CutSuffix(text, "],")
	return text, isText && isWhole
}
