// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/callbraid/callbraid/internal/greys"
)

// detailBlock reads the table of all that is known of a recorded call:
//
//	+-----------------+---...
//	|           INDEX | 1001
//	+-----------------+---...
//
// Texts of objects can have any number of lines. What is longer than the column goes on in
// the next line, so of two lines of which the first one is as long as the column it is not
// known whether a line break stands between them; there is none then. Spaces at the end of
// a line are lost too.
type detailBlock struct {
	*output
	definite
	pairs
	stack stackReader
	reply greys.RecordDetail
	has   detailFields
}

// detailFields are those that have come, of the ones that have to.
type detailFields uint8

const (
	detailIndex detailFields = 1 << iota
	detailTime
	detailCost
	detailClass
	detailMethod
	detailReturned
	detailThrew
	detailAll = 1<<iota - 1
)

// detailStyle is how the table is drawn.
var detailStyle = tableStyle{columns: []column{{width: 15, right: true}, {width: 150}}, padding: 1, bottom: true}

// Names of rows.
const (
	detailParameters = "PARAMETERS["
	detailException  = "THROW-EXCEPTION"
	detailReturn     = "RETURN-OBJ"
	detailStack      = "STACK"
	detailObject     = "OBJECT"
	detailProcess    = "PROCESS-ID"
)

func (b *detailBlock) line(text []byte) error { return b.pairs.line(text, b) }

func (b *detailBlock) end() error {
	if err := b.finish(); err != nil {
		return err
	}
	if b.has != detailAll {
		return wrong("a table of a recorded call, with INDEX, GMT-CREATE, COST(ms), CLASS, METHOD, IS-RETURN and IS-EXCEPTION", nil)
	}
	b.output.reply(&b.reply)
	return nil
}

// maxParameters is how many a method can have.
const maxParameters = 255

// pair reads a row. Rows of other names, which there may be, are passed over.
func (b *detailBlock) pair(key []byte, value *cell) error {
	r := &b.reply
	switch name := string(key); {
	case strings.HasPrefix(name, detailParameters):
		if len(r.Parameters) == maxParameters {
			return wrong(fmt.Sprintf("at most %d parameters", maxParameters), key)
		}
		r.Parameters = append(r.Parameters, validText(value.joined(nil)))
	case name == detailReturn:
		r.Return = validText(value.joined(nil))
	case name == detailException:
		r.Exception = validText(value.joined(isTraceLine))
	case name == detailStack:
		return b.readStack(value.joined(isFrameLine))
	default:
		return b.field(name, value.joined(nil))
	}
	return nil
}

// isTraceLine and isFrameLine say which lines are never the rest of a longer one: those of
// Java's stack traces, and of the server's.
func isTraceLine(line []byte) bool {
	for _, begin := range []string{"    at ", "    ... ", "Caused by: "} {
		if bytes.HasPrefix(line, []byte(begin)) {
			return true
		}
	}
	return false
}

func isFrameLine(line []byte) bool {
	return bytes.HasPrefix(line, []byte(firstFrame)) || bytes.HasPrefix(line, []byte(nextFrame))
}

func (b *detailBlock) readStack(text []byte) error {
	b.reply.HasStack = true
	b.stack.begin(&b.reply.Stack)
	for line, rest := nextLine(text); len(line)+len(rest) > 0; line, rest = nextLine(rest) {
		if err := b.stack.line(line, &b.names, &b.reply.Stack); err != nil {
			return err
		}
	}
	if !b.stack.title.complete {
		return wrong("a stack with its title", text)
	}
	return nil
}

// field reads a row with one value.
func (b *detailBlock) field(name string, text []byte) error {
	r, ok, is := &b.reply, true, detailFields(0)
	switch name {
	case "INDEX":
		is = detailIndex
		r.Index, ok = count(text)
	case detailProcess:
		r.Process, ok = count(text)
	case "GMT-CREATE":
		is = detailTime
		r.Time, ok = b.clock.at(text)
	case "COST(ms)":
		is = detailCost
		r.Cost, ok = milliseconds(text)
	case detailObject:
		r.Object = b.names.object(text)
	case "CLASS":
		is = detailClass
		r.Class = b.names.of(text)
	case "METHOD":
		is = detailMethod
		r.Method = b.names.of(text)
	case "IS-RETURN":
		is = detailReturned
		r.Returned, ok = boolean(text)
	case "IS-EXCEPTION":
		is = detailThrew
		r.Threw, ok = boolean(text)
	}
	if !ok {
		return wrong("a recorded call with a value of its kind as "+name, text)
	}
	b.has |= is
	return nil
}

// AppendRecordDetail adds the table of all that is known of a recorded call.
func AppendRecordDetail(b []byte, r *greys.RecordDetail) []byte {
	rows := [][]string{
		{"INDEX", strconv.FormatInt(r.Index, 10)},
		{detailProcess, strconv.FormatInt(r.Process, 10)},
		{"GMT-CREATE", r.Time.Format(timeLayout)},
		{"COST(ms)", wholeMilliseconds(r.Cost)},
		{detailObject, objectText(r.Object)},
		{"CLASS", r.Class},
		{"METHOD", r.Method},
		{"IS-RETURN", strconv.FormatBool(r.Returned)},
		{"IS-EXCEPTION", strconv.FormatBool(r.Threw)},
	}
	for i, p := range r.Parameters {
		rows = append(rows, []string{fmt.Sprintf("%s%d]", detailParameters, i), p})
	}
	if r.Threw {
		rows = append(rows, []string{detailException, r.Exception})
	} else {
		rows = append(rows, []string{detailReturn, r.Return})
	}
	if r.HasStack {
		rows = append(rows, []string{detailStack, string(appendStack(nil, &r.Stack))})
	}
	return appendTable(b, detailStyle, rows)
}
