// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"unicode/utf8"
)

// table knows the columns of a table from its border line,
//
//	+-----------+-------+
//	| TIMESTAMP | CLASS |
//
// and never from the bars between them, which texts may hold. A cell's text has a space on
// either side, and is filled up with spaces to the column's width, on its left or its right;
// what is longer than the width, which columns of a fixed width have, goes on in the next
// line.
type table struct {
	border []byte
	// edges are where the border has its crosses, in UTF-16 units.
	edges []int
	// cells are those of the line that was split last, without the space on either side.
	cells [][]byte
}

const (
	maxColumns = 32
	// frame is what stands around a cell's text: a bar, and a space on either side.
	frame = 3
)

const expectedBorder = "a table's border"

// isBorder reports whether a line is the border of the table that is known.
func (t *table) isBorder(line []byte) bool {
	return len(line) > 0 && line[0] == '+' && bytes.Equal(line, t.border)
}

// learn takes the columns from a border.
func (t *table) learn(line []byte) error {
	if t.isBorder(line) {
		return nil
	}
	t.border, t.edges = t.border[:0], t.edges[:0]
	if len(line) == 0 || line[0] != '+' {
		return wrong(expectedBorder, line)
	}
	for at, c := range line {
		switch {
		case c == '+' && at > 0 && at-t.edges[len(t.edges)-1] <= frame, c != '+' && c != '-':
			return wrong(expectedBorder, line)
		case c == '+' && len(t.edges) > maxColumns:
			return wrong("a table of at most 32 columns", line)
		case c == '+':
			t.edges = append(t.edges, at)
		}
	}
	if len(t.edges) < 2 || t.edges[len(t.edges)-1] != len(line)-1 {
		return wrong(expectedBorder, line)
	}
	t.border = append(t.border, line...)
	t.cells = make([][]byte, t.columns())
	return nil
}

func (t *table) columns() int { return len(t.edges) - 1 }

// width is how many UTF-16 units a column's texts have at most.
func (t *table) width(column int) int {
	return t.edges[column+1] - t.edges[column] - frame
}

const expectedRow = "a row, with a bar below each cross of the border"

// split cuts a line of a row into its cells.
func (t *table) split(line []byte) error {
	if len(line) == len(t.border) && isASCII(line) {
		for i := range t.cells {
			if !t.cut(line, i, t.edges[i], t.edges[i+1]) {
				return wrong(expectedRow, line)
			}
		}
		return nil
	}
	return t.splitWide(line)
}

// cut takes a cell from between its bars.
func (t *table) cut(line []byte, column, bar, next int) bool {
	if next-bar < frame || line[bar] != '|' || line[next] != '|' || line[bar+1] != ' ' || line[next-1] != ' ' {
		return false
	}
	t.cells[column] = line[bar+2 : next-1]
	return true
}

// splitWide is split for a line in which characters are not bytes.
func (t *table) splitWide(line []byte) error {
	edge, bar := 0, 0
	for at, column := 0, 0; at < len(line); {
		if column == t.edges[edge] {
			if line[at] != '|' || edge > 0 && !t.cut(line, edge-1, bar, at) {
				return wrong(expectedRow, line)
			}
			if bar, edge = at, edge+1; edge == len(t.edges) {
				if at == len(line)-1 {
					return nil
				}
				break
			}
		}
		r, size := utf8.DecodeRune(line[at:])
		at += size
		if column++; r >= beyondBMP {
			column++
		}
		if column > t.edges[edge] {
			break
		}
	}
	return wrong(expectedRow, line)
}

// left and right are the texts of the cell of a column whose texts stand on its left or its
// right side.
func (t *table) left(column int) []byte  { return bytes.TrimRight(t.cells[column], " ") }
func (t *table) right(column int) []byte { return bytes.TrimLeft(t.cells[column], " ") }

// broken stands in a [cell] between two lines of which it is not known whether the server
// broke one for its length. It is a line break for the server, so no text in a table has it.
const broken = '\r'

// cell puts the text of one cell together from its lines.
type cell struct {
	text []byte
	any  bool
	full bool
}

func (c *cell) reset() { c.text, c.any, c.full = c.text[:0], false, false }

// add adds the text of a line, in a column of a width.
func (c *cell) add(text []byte, width int) {
	if c.any {
		if c.full {
			c.text = append(c.text, broken)
		} else {
			c.text = append(c.text, '\n')
		}
	}
	c.any, c.full = true, units(text) >= width
	for _, b := range text {
		if b == broken {
			b = ' '
		}
		c.text = append(c.text, b)
	}
}

// joined is the text, in which lines that may have been broken for their length are joined,
// but for those of which begins says that they are lines of their own. What the server left
// empty at its end is left out.
func (c *cell) joined(begins func(line []byte) bool) []byte {
	text := c.text[:0]
	for at, b := range c.text {
		switch {
		case b != broken:
			text = append(text, b)
		case begins != nil && begins(firstLine(c.text[at+1:])):
			text = append(text, '\n')
		}
	}
	c.text = bytes.TrimRight(text, "\n")
	return c.text
}

// firstLine is text up to its first line break of any kind.
func firstLine(text []byte) []byte {
	if end := bytes.IndexAny(text, "\n\r"); end >= 0 {
		return text[:end]
	}
	return text
}

// nextLine cuts the first line off text.
func nextLine(text []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(text, []byte("\n"))
	return line, rest
}
