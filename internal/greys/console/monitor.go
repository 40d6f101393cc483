// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"strconv"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// monitorBlock reads the tables of a monitor. The first one arrives immediately and has no rows. One follows for each
// cycle, with a blank line below. A method that was called only in earlier cycles has no shortest and longest time.
type monitorBlock struct {
	*output
	definite
	table
	state  tableState
	headed bool
	fields []monitorField
	reply  javamethods.Statistics
}

// monitorField is the meaning of a column.
type monitorField uint8

const (
	monitorOther monitorField = iota
	monitorTime
	monitorClass
	monitorMethod
	monitorTotal
	monitorSuccess
	monitorFail
	monitorMean
	monitorMin
	monitorMax
)

var monitorFields = map[string]monitorField{
	"TIMESTAMP": monitorTime, "CLASS": monitorClass, "METHOD": monitorMethod, "TOTAL": monitorTotal, "SUCCESS": monitorSuccess,
	"FAIL": monitorFail, "AVG-RT(ms)": monitorMean, "MIN-RT(ms)": monitorMin, "MAX-RT(ms)": monitorMax,
}

func (b *monitorBlock) open() bool { return b.state != outside }

func (b *monitorBlock) line(text []byte) error {
	switch {
	case b.state == outside:
		b.state, b.headed, b.reply.Methods = atBorder, false, reused(b.reply.Methods)
		return b.learn(text)
	case b.state == inRow:
		if !b.isBorder(text) {
			return unexpected("a border below a row of a monitor", text)
		}
		b.state = atBorder
		return nil
	case len(text) == 0 && b.headed:
		b.complete()
		return nil
	}
	b.state = inRow
	if err := b.split(text); err != nil {
		return err
	}
	if !b.headed {
		b.headed = true
		return b.head(text)
	}
	return b.row(text)
}

// complete delivers the answer.
func (b *monitorBlock) complete() {
	b.state = outside
	b.output.reply(&b.reply)
}

func (b *monitorBlock) end() error {
	switch {
	case b.state == outside:
	case b.state == inRow || !b.headed:
		return unexpected("the rest of a monitor's table", nil)
	default:
		b.complete()
	}
	return nil
}

// head reads the names of the columns.
func (b *monitorBlock) head(text []byte) error {
	b.fields = b.fields[:0]
	needed := 0
	for i := range b.cells {
		f := monitorFields[string(b.left(i))]
		b.fields = append(b.fields, f)
		if f >= monitorTime && f <= monitorFail {
			needed |= 1 << f
		}
	}
	const all = 1<<(monitorFail+1) - 1<<monitorTime
	if needed != all {
		return unexpected("the columns of a monitor: TIMESTAMP, CLASS, METHOD, TOTAL, SUCCESS, FAIL", text)
	}
	return nil
}

// row reads a row.
func (b *monitorBlock) row(text []byte) error {
	var m javamethods.MethodStatistics
	var hasMin, hasMax, hasMean bool
	for i, f := range b.fields {
		value := b.left(i)
		ok := true
		switch f {
		case monitorTime:
			m.Time, ok = b.clock.parse(value)
		case monitorClass:
			m.Class = b.names.Intern(value)
		case monitorMethod:
			m.Method = b.names.Intern(value)
		case monitorTotal:
			m.Calls, ok = count(value)
		case monitorSuccess:
			m.Succeeded, ok = count(value)
		case monitorFail:
			m.Failed, ok = count(value)
		case monitorMean:
			m.Mean, ok = milliseconds(value)
			hasMean = true
		case monitorMin:
			m.Min, hasMin, ok = optionalMilliseconds(value)
		case monitorMax:
			m.Max, hasMax, ok = optionalMilliseconds(value)
		}
		if !ok {
			return unexpected(fmt.Sprintf("a row of a monitor with a value of its kind in column %d", i+1), text)
		}
	}
	if m.Failed > m.Calls-m.Succeeded {
		return unexpected("a row of a monitor with SUCCESS and FAIL that are at most TOTAL together", text)
	}
	m.HasMean = hasMean && m.Calls > 0
	if m.HasRange = hasMin && hasMax; !m.HasRange {
		m.Min, m.Max = 0, 0
	}
	b.reply.Methods = append(b.reply.Methods, m)
	return nil
}

// optionalMilliseconds reads a time in milliseconds that can be missing.
func optionalMilliseconds(text []byte) (d time.Duration, has, ok bool) {
	if len(text) == 0 {
		return 0, false, true
	}
	d, ok = milliseconds(text)
	return d, ok, ok
}

// AppendStatistics adds the table of a cycle. It has no rows if there are no methods.
func AppendStatistics(b []byte, s *javamethods.Statistics) []byte {
	rows := [][]string{{
		"TIMESTAMP", "CLASS", "METHOD", "TOTAL", "SUCCESS", "FAIL", "FAIL-RATE", "AVG-RT(ms)", "MIN-RT(ms)", "MAX-RT(ms)",
	}}
	for _, m := range s.Methods {
		var shortest, longest string
		if m.HasRange {
			shortest, longest = wholeMilliseconds(m.Min), wholeMilliseconds(m.Max)
		}
		rate := 0.0
		if m.Calls > 0 {
			rate = 100 * (float64(m.Failed) / float64(m.Calls))
		}
		rows = append(rows, []string{
			m.Time.Format(timeLayout), m.Class, m.Method, strconv.FormatInt(m.Calls, 10), strconv.FormatInt(m.Succeeded, 10),
			strconv.FormatInt(m.Failed, 10), fmt.Sprintf("%05.2f%%", rate), hundredths(m.Mean), shortest, longest,
		})
	}
	style := tableStyle{columns: make([]column, len(rows[0])), padding: 1, bottom: true}
	return append(appendTable(b, style, rows), '\n')
}

// hundredths writes a time in milliseconds, such as "08.19".
func hundredths(d time.Duration) string {
	return fmt.Sprintf("%05.2f", float64(d)/float64(time.Millisecond))
}
