// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import "bytes"

// pairs reads a table of two columns: names on the left and values on the right. A value can have many lines.
type pairs struct {
	table
	state tableState
	key   []byte
	value cell
}

// pairReader receives each complete row.
type pairReader interface {
	pair(key []byte, value *cell) error
}

// tableState is the position in a table.
type tableState uint8

const (
	outside  tableState = iota // no table
	atBorder                   // behind a border
	inRow                      // behind a line of a row
)

func (p *pairs) open() bool { return p.state != outside }

func (p *pairs) line(text []byte, into pairReader) error {
	switch {
	case p.state == outside:
		if err := p.learn(text); err != nil {
			return err
		}
		if p.columns() != 2 {
			return unexpected("a table of two columns", text)
		}
		p.state = atBorder
	case p.state == inRow && p.isBorder(text):
		p.state = atBorder
		return into.pair(p.key, &p.value)
	case len(text) > 0 && text[0] == '|':
		return p.row(text)
	default:
		return unexpected("a row or a border of a table of two columns", text)
	}
	return nil
}

func (p *pairs) row(text []byte) error {
	if err := p.split(text); err != nil {
		return err
	}
	if p.state == atBorder {
		p.state = inRow
		p.key = append(p.key[:0], bytes.TrimSpace(p.cells[0])...)
		p.value.reset()
	}
	p.value.addLine(p.left(1), p.width(1))
	return nil
}

// finish checks that the table is complete.
func (p *pairs) finish() error {
	if p.state == inRow {
		return unexpected("a border below the last row of a table", nil)
	}
	p.state = outside
	return nil
}
