// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// detailBlock reads the table with all details of a recorded call:
//
//	+-----------------+---...
//	|           INDEX | 1001
//	+-----------------+---...
//
// Texts of objects can have any number of lines. The server breaks a line that is longer than the column. If a line
// fills the column, a line break of the text and a break by the server look the same; the block then joins the lines.
// Spaces at the end of a line are lost as well.
type detailBlock struct {
	*output
	definite
	pairs
	stack stackReader
	reply javamethods.RecordDetail
	has   detailFields
}

// detailFields is the set of required fields that have been read.
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

// detailStyle is the layout of the table.
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
		return unexpected("a table of a recorded call, with INDEX, GMT-CREATE, COST(ms), CLASS, METHOD, IS-RETURN and IS-EXCEPTION", nil)
	}
	b.output.reply(&b.reply)
	return nil
}

// maxParameters is the maximum number of parameters of a Java method.
const maxParameters = 255

// pair reads a row. It ignores rows with other names.
func (b *detailBlock) pair(key []byte, value *cell) error {
	r := &b.reply
	switch name := string(key); {
	case strings.HasPrefix(name, detailParameters):
		if len(r.Parameters) == maxParameters {
			return unexpected(fmt.Sprintf("at most %d parameters", maxParameters), key)
		}
		r.Parameters = append(r.Parameters, javamethods.ValidText(value.joined(nil)))
	case name == detailReturn:
		r.Return = javamethods.ValidText(value.joined(nil))
	case name == detailException:
		r.Exception = javamethods.ValidText(value.joined(isTraceLine))
	case name == detailStack:
		return b.readStack(value.joined(isFrameLine))
	default:
		return b.field(name, value.joined(nil))
	}
	return nil
}

// isTraceLine and isFrameLine report whether a line is certainly not the rest of a longer line: a line of Java's stack
// trace, or of the server's.
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
		return unexpected("a stack with its title", text)
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
		r.Time, ok = b.clock.parse(text)
	case "COST(ms)":
		is = detailCost
		r.Cost, ok = milliseconds(text)
	case detailObject:
		r.Object = b.names.object(text)
	case "CLASS":
		is = detailClass
		r.Class = b.names.Intern(text)
	case "METHOD":
		is = detailMethod
		r.Method = b.names.Intern(text)
	case "IS-RETURN":
		is = detailReturned
		r.Returned, ok = boolean(text)
	case "IS-EXCEPTION":
		is = detailThrew
		r.Threw, ok = boolean(text)
	}
	if !ok {
		return unexpected("a recorded call with a value of its kind as "+name, text)
	}
	b.has |= is
	return nil
}

// AppendRecordDetail adds the table with all details of a recorded call.
func AppendRecordDetail(b []byte, r *javamethods.RecordDetail) []byte {
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
