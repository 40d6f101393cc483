// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"unicode/utf8"
)

// table reads the columns of a table from its border line,
//
//	+-----------+-------+
//	| TIMESTAMP | CLASS |
//
// and never from the bars between cells, because texts can hold bars. A cell's text has a space on both sides. Spaces
// on the left or the right fill it up to the column's width. In a column of fixed width, a longer text continues in the
// next line.
type table struct {
	border []byte
	// edges are the positions of the crosses in the border, in UTF-16 units.
	edges []int
	// cells are the cells of the last split line, without the space on either side.
	cells [][]byte
}

const (
	maxColumns = 32
	// frame is the width around a cell's text: a bar and two spaces.
	frame = 3
)

const expectedBorder = "a table's border"

// isBorder reports whether a line is the known border of the table.
func (t *table) isBorder(line []byte) bool {
	return len(line) > 0 && line[0] == '+' && bytes.Equal(line, t.border)
}

// learn reads the columns from a border.
func (t *table) learn(line []byte) error {
	if t.isBorder(line) {
		return nil
	}
	t.border, t.edges = t.border[:0], t.edges[:0]
	if len(line) == 0 || line[0] != '+' {
		return unexpected(expectedBorder, line)
	}
	for at, c := range line {
		switch {
		case c == '+' && at > 0 && at-t.edges[len(t.edges)-1] <= frame, c != '+' && c != '-':
			return unexpected(expectedBorder, line)
		case c == '+' && len(t.edges) > maxColumns:
			return unexpected("a table of at most 32 columns", line)
		case c == '+':
			t.edges = append(t.edges, at)
		}
	}
	if len(t.edges) < 2 || t.edges[len(t.edges)-1] != len(line)-1 {
		return unexpected(expectedBorder, line)
	}
	t.border = append(t.border, line...)
	t.cells = make([][]byte, t.columns())
	return nil
}

func (t *table) columns() int { return len(t.edges) - 1 }

// width is the maximum length of a column's texts, in UTF-16 units.
func (t *table) width(column int) int {
	return t.edges[column+1] - t.edges[column] - frame
}

const expectedRow = "a row, with a bar below each cross of the border"

// split cuts a line of a row into its cells.
func (t *table) split(line []byte) error {
	if len(line) == len(t.border) && isASCII(line) {
		for i := range t.cells {
			if !t.cut(line, i, t.edges[i], t.edges[i+1]) {
				return unexpected(expectedRow, line)
			}
		}
		return nil
	}
	return t.splitWide(line)
}

// cut stores the cell between two bars.
func (t *table) cut(line []byte, column, bar, next int) bool {
	if next-bar < frame || line[bar] != '|' || line[next] != '|' || line[bar+1] != ' ' || line[next-1] != ' ' {
		return false
	}
	t.cells[column] = line[bar+2 : next-1]
	return true
}

// splitWide is split for a line with characters outside ASCII.
func (t *table) splitWide(line []byte) error {
	edge, bar := 0, 0
	for at, column := 0, 0; at < len(line); {
		if column == t.edges[edge] {
			if line[at] != '|' || edge > 0 && !t.cut(line, edge-1, bar, at) {
				return unexpected(expectedRow, line)
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
	return unexpected(expectedRow, line)
}

// left and right return the text of a cell that is aligned left or right.
func (t *table) left(column int) []byte  { return bytes.TrimRight(t.cells[column], " ") }
func (t *table) right(column int) []byte { return bytes.TrimLeft(t.cells[column], " ") }

// broken separates two lines in a [cell] if the server may have broken a line there for its length. No text in a table
// holds this character: the server treats it as a line break.
const broken = '\r'

// cell collects the lines of one cell.
type cell struct {
	text []byte
	any  bool
	full bool
}

func (c *cell) reset() { c.text, c.any, c.full = c.text[:0], false, false }

// addLine adds one line, in a column of a width.
func (c *cell) addLine(text []byte, width int) {
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

// joined returns the text. It joins lines that the server may have broken for their length, except before a line for
// which begins returns true. It drops empty lines at the end.
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

// firstLine returns the text up to its first line break of any kind.
func firstLine(text []byte) []byte {
	if end := bytes.IndexAny(text, "\n\r"); end >= 0 {
		return text[:end]
	}
	return text
}

// nextLine cuts the first line off a text.
func nextLine(text []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(text, []byte("\n"))
	return line, rest
}
