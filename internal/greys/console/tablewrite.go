// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"strings"
	"unicode/utf16"
)

// column is the layout of a column.
type column struct {
	// width is the maximum length of a line in UTF-16 units; 0 means the length of the longest line.
	width int
	// right aligns texts on the right.
	right bool
}

// tableStyle is the layout of a table. A table always has a border above.
type tableStyle struct {
	columns []column
	// padding is the number of spaces on either side of a text.
	padding int
	bottom  bool // draws a border below
}

// text is a text in UTF-16 units, as Java stores it.
type text []uint16

// utf16Of returns a text as it stands in a table: with spaces in place of tabs.
func utf16Of(s string) text { return utf16.Encode([]rune(strings.ReplaceAll(s, "\t", "    "))) }

// appendTable adds a table as the server draws it. Each row has one text for each column.
func appendTable(b []byte, style tableStyle, rows [][]string) []byte {
	cells := make([][][]text, len(rows))
	widths := make([]int, len(style.columns))
	for c, column := range style.columns {
		widths[c] = column.width
	}
	for r, row := range rows {
		cells[r] = make([][]text, len(row))
		for c, s := range row {
			units := utf16Of(s)
			if style.columns[c].width > 0 {
				units = wrapped(units, widths[c])
			}
			cells[r][c] = lines(units)
			if style.columns[c].width == 0 {
				for _, line := range cells[r][c] {
					widths[c] = max(widths[c], len(line))
				}
			}
		}
	}
	border := borderOf(widths, style.padding)
	for _, row := range cells {
		b = append(b, border...)
		b = appendRow(b, style, widths, row)
	}
	if style.bottom && len(rows) > 0 {
		b = append(b, border...)
	}
	return b
}

// borderOf returns the line above and below rows.
func borderOf(widths []int, padding int) string {
	var line strings.Builder
	for _, w := range widths {
		if w > 0 {
			line.WriteString("+" + strings.Repeat("-", w+2*padding))
		}
	}
	return line.String() + "+\n"
}

// appendRow adds the lines of a row: as many as its longest cell has.
func appendRow(b []byte, style tableStyle, widths []int, cells [][]text) []byte {
	most := 0
	for _, lines := range cells {
		most = max(most, len(lines))
	}
	padding := strings.Repeat(" ", style.padding)
	for i := range most {
		for c, lines := range cells {
			if widths[c] == 0 {
				continue
			}
			var line text
			if i < len(lines) {
				line = lines[i]
			}
			fill := bytes.Repeat([]byte(" "), max(0, widths[c]-len(line)))
			b = append(append(b, '|'), padding...)
			if style.columns[c].right {
				b = append(b, fill...)
			}
			b = append(b, encoded(line)...)
			if !style.columns[c].right {
				b = append(b, fill...)
			}
			b = append(b, padding...)
		}
		b = append(b, "|\n"...)
	}
	return b
}

// encoded returns the text as the server sends it: half a surrogate pair becomes a question mark.
func encoded(t text) string {
	runes := utf16.Decode(t)
	at := 0
	for i, r := range runes {
		if utf16.IsSurrogate(rune(t[at])) && r < beyondBMP {
			runes[i] = '?'
		}
		at += max(1, utf16.RuneLen(r))
	}
	return string(runes)
}

// wrapped inserts a line break before each unit that would make a line longer than width, unless a line break stands
// there already.
func wrapped(t text, width int) text {
	var all text
	in := 0
	for _, u := range t {
		if in == width {
			in = 0
			if all = append(all, '\n'); u == '\n' {
				continue
			}
		}
		if in++; u == '\n' {
			in = 0
		}
		all = append(all, u)
	}
	return all
}

// lines splits a text like Java's Scanner: no empty line follows the last line break.
func lines(t text) (all []text) {
	for begin, at := 0, 0; at <= len(t); at++ {
		switch {
		case at == len(t):
			if begin < at {
				all = append(all, t[begin:])
			}
		case isLineBreak(t[at]):
			all = append(all, t[begin:at])
			if t[at] == '\r' && at+1 < len(t) && t[at+1] == '\n' {
				at++
			}
			begin = at + 1
		}
	}
	return all
}

func isLineBreak(unit uint16) bool {
	switch unit {
	case '\n', '\r', '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}
