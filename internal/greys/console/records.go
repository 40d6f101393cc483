// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"strconv"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// recordsBlock reads tables of recorded calls. While calls are recorded, the server sends each one as a border and a
// row. The names of the columns precede the first row, or several rows if these were first.
//
//	+----------+------------+----------------------+------------+----------+---...
//	|     1001 |       1001 |  2026-11-20 09:12:32 |         10 |    false |   ...
type recordsBlock struct {
	*output
	table
	row tableState
	// texts are the cells of the row, which can have several lines.
	texts [len(recordColumns)]cell
	reply javamethods.Record
}

// Positions of the columns.
const (
	recordIndex = iota
	recordProcess
	recordTime
	recordCost
	recordReturned
	recordThrew
	recordObject
	recordClass
	recordMethod
)

var recordColumns = [...]struct {
	name  string
	width int
}{
	recordIndex: {"INDEX", 8}, recordProcess: {"PROCESS-ID", 10}, recordTime: {"TIMESTAMP", 20}, recordCost: {"COST(ms)", 10},
	recordReturned: {"IS-RET", 8}, recordThrew: {"IS-EXP", 8}, recordObject: {"OBJECT", 15}, recordClass: {"CLASS", 30},
	recordMethod: {"METHOD", 30},
}

// noObject is the server's text for a call without an object.
const noObject = "NULL"

func (b *recordsBlock) open() bool { return b.row == inRow }

// A row whose cells may continue in the next line is complete if no such line follows: mayBeComplete, pause and end
// handle that.
func (b *recordsBlock) mayBeComplete() bool { return b.open() }

func (b *recordsBlock) pause() error { return b.complete() }
func (b *recordsBlock) end() error   { return b.complete() }

func (b *recordsBlock) line(text []byte) error {
	if len(text) == 0 || text[0] != '|' {
		if err := b.complete(); err != nil {
			return err
		}
		b.row = atBorder
		if err := b.learn(text); err != nil {
			return err
		}
		if b.columns() != len(recordColumns) {
			return unexpected(fmt.Sprintf("a table of %d columns", len(recordColumns)), text)
		}
		return nil
	}
	if b.row == outside {
		return unexpected(expectedBorder+" above a row", text)
	}
	return b.rowLine(text)
}

// rowLine reads a line of a row. The row is complete if no cell fills its width.
func (b *recordsBlock) rowLine(text []byte) error {
	if err := b.split(text); err != nil {
		return err
	}
	full := false
	for i := range b.texts {
		if b.row == atBorder {
			b.texts[i].reset()
		}
		value := b.right(i)
		if len(value) > 0 || b.row == atBorder {
			b.texts[i].addLine(value, b.width(i))
		}
		full = full || b.texts[i].full && len(value) > 0
	}
	b.row = inRow
	if full {
		return nil
	}
	return b.complete()
}

// complete delivers the current row, if there is one.
func (b *recordsBlock) complete() error {
	if b.row != inRow {
		return nil
	}
	b.row = outside
	if string(b.text(recordIndex)) == recordColumns[recordIndex].name {
		return b.head()
	}
	r := &b.reply
	*r = javamethods.Record{IsSimple: true, Class: b.names.Intern(b.text(recordClass)), Method: b.names.Intern(b.text(recordMethod))}
	for i := range recordClass {
		if value := b.text(i); !b.setValue(i, value) {
			return unexpected("a recorded call with a value of its kind as "+recordColumns[i].name, value)
		}
	}
	b.output.reply(r)
	return nil
}

func (b *recordsBlock) text(column int) []byte { return b.texts[column].joined(nil) }

// setValue stores one value of a record.
func (b *recordsBlock) setValue(column int, text []byte) (ok bool) {
	switch r := &b.reply; column {
	case recordIndex:
		r.Index, ok = count(text)
	case recordProcess:
		r.Process, ok = count(text)
	case recordTime:
		r.Time, ok = b.clock.parse(text)
	case recordCost:
		r.Cost, ok = milliseconds(text)
	case recordReturned:
		r.Returned, ok = boolean(text)
	case recordThrew:
		r.Threw, ok = boolean(text)
	case recordObject:
		r.Object, ok = b.names.object(text), true
	}
	return ok
}

// object returns an object's hash code.
func (n *names) object(text []byte) string {
	if string(text) == noObject {
		return ""
	}
	return n.Intern(text)
}

// head checks the names of the columns.
func (b *recordsBlock) head() error {
	for i, c := range recordColumns {
		if name := b.text(i); string(name) != c.name {
			return unexpected("the name of a column: "+c.name, name)
		}
	}
	return nil
}

// AppendRecord adds a recorded call as the server sends it while it records. The first one has the names of the columns
// above it. The last one has a border below it.
func AppendRecord(b []byte, r *javamethods.Record, first, last bool) []byte {
	var rows [][]string
	if first {
		rows = append(rows, recordNames())
	}
	return appendTable(b, recordStyle(last), append(rows, recordRow(r)))
}

// AppendRecords adds the table of all recorded calls.
func AppendRecords(b []byte, records []javamethods.Record) []byte {
	rows := [][]string{recordNames()}
	for i := range records {
		rows = append(rows, recordRow(&records[i]))
	}
	return appendTable(b, recordStyle(true), rows)
}

func recordStyle(bottom bool) tableStyle {
	s := tableStyle{padding: 1, bottom: bottom}
	for _, c := range recordColumns {
		s.columns = append(s.columns, column{width: c.width, right: true})
	}
	return s
}

func recordNames() (row []string) {
	for _, c := range recordColumns {
		row = append(row, c.name)
	}
	return row
}

func recordRow(r *javamethods.Record) []string {
	return []string{
		strconv.FormatInt(r.Index, 10), strconv.FormatInt(r.Process, 10), r.Time.Format(timeLayout),
		wholeMilliseconds(r.Cost), strconv.FormatBool(r.Returned), strconv.FormatBool(r.Threw), objectText(r.Object),
		javamethods.SimpleName(r.Class), r.Method,
	}
}

func objectText(object string) string {
	if object == "" {
		return noObject
	}
	return object
}

func wholeMilliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
