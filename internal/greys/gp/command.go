// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// nothing is the data of a request without parameters.
const nothing = "{}"

// AppendCommand adds the data of a command's request and returns its type. The error is javamethods.ErrUnsupported if
// GP has no such request or codes has no code for it. Otherwise it names the missing part of the command.
func AppendCommand(to []byte, command javamethods.Command, codes Codes) (RequestType, []byte, error) {
	requestType := codes.of(command)
	if requestType == 0 {
		return 0, to, fmt.Errorf("%w: GP has no request for it, or no code was configured", javamethods.ErrUnsupported)
	}
	if err := check(command); err != nil {
		return 0, to, err
	}
	w := object{to: append(to, '{')}
	switch c := command.(type) {
	case javamethods.MonitorCommand:
		w.text("class-pattern", c.Class.String())
		w.text("method-pattern", c.Method.String())
		w.text("cycle", strconv.FormatInt(int64(c.Cycle/time.Second), 10))
		w.text("is-regex", strconv.FormatBool(c.Regexp))
	case javamethods.ResetCommand:
		w.text("class-pattern", c.Class.String())
		w.text("is-regex", strconv.FormatBool(c.Regexp))
	case javamethods.ClassesCommand:
		w.text("class-pattern", c.Class.String())
		w.inventory(c.Regexp, c.Fields)
	case javamethods.MethodsCommand:
		w.text("class-pattern", c.Class.String())
		w.text("method-pattern", c.Method.String())
		w.inventory(c.Regexp, true) // as in the sample; methods have no fields
	case javamethods.StackCommand:
		w.text("class-pattern", c.Class.String())
		w.text("method-pattern", c.Method.String())
		w.text("condition-express", always)
		w.text("is-regex", strconv.FormatBool(c.Regexp))
		w.text("limit", limitText(c.Limit))
	case javamethods.RecordsCommand:
		w.text("condition-express", always)
	case javamethods.RecordDetailCommand:
		w.text("index", strconv.FormatInt(c.Index, 10))
		w.key("expend")
		w.to = append(w.to, `{"level":"1","format":"json"}`...)
	}
	return requestType, append(w.to, '}'), nil
}

// check returns an error if a command is incomplete.
func check(command javamethods.Command) error {
	switch c := command.(type) {
	case javamethods.MonitorCommand:
		if c.Cycle < time.Second || c.Cycle%time.Second != 0 {
			return fmt.Errorf("cycle is %v: expected whole seconds, at least 1", c.Cycle)
		}
		return checkPatterns(c.Class, c.Method)
	case javamethods.StackCommand:
		return checkPatterns(c.Class, c.Method)
	case javamethods.MethodsCommand:
		return checkPatterns(c.Class, c.Method)
	case javamethods.ClassesCommand:
		return checkPatterns(c.Class)
	case javamethods.ResetCommand:
		return checkPatterns(c.Class)
	}
	return nil
}

func checkPatterns(patterns ...javamethods.Pattern) error {
	if slices.Contains(patterns, javamethods.Pattern{}) {
		return errors.New("a pattern is missing")
	}
	return nil
}

// always is a condition that is true for all calls. The client sends no other expression.
const always = "true"

// inventory adds the last members of requests for classes and methods.
func (o *object) inventory(regexp, fields bool) {
	o.text("is-regex", strconv.FormatBool(regexp))
	o.text("is-display-fields", strconv.FormatBool(fields))
	o.text("is-display-detail", "true")
}

// limitText returns a limit in GP's format: -1 for none.
func limitText(limit javamethods.Limit) string {
	if limit <= 0 {
		return "-1"
	}
	return strconv.FormatInt(int64(limit), 10)
}

// of returns the type of a command's request; 0 means that there is none.
func (c Codes) of(command javamethods.Command) RequestType {
	switch command.(type) {
	case javamethods.VersionCommand:
		return Version
	case javamethods.MonitorCommand:
		return Monitor
	case javamethods.ResetCommand:
		return Reset
	case javamethods.ClassesCommand:
		return Classes
	case javamethods.MethodsCommand:
		return Methods
	case javamethods.SessionsCommand:
		return c.Sessions
	case javamethods.StackCommand:
		return c.Stack
	case javamethods.RecordsCommand:
		return c.Records
	case javamethods.RecordDetailCommand:
		return c.RecordDetail
	default:
		return 0
	}
}

// nameOf returns the name of a command for errors, as in the server's console.
func nameOf(command javamethods.Command) string {
	switch c := command.(type) {
	case javamethods.VersionCommand:
		return "version"
	case javamethods.SessionsCommand:
		return "session"
	case javamethods.MonitorCommand:
		return fmt.Sprintf("monitor %v %v", c.Class, c.Method)
	case javamethods.TraceCommand:
		return fmt.Sprintf("trace %v %v", c.Class, c.Method)
	case javamethods.StackCommand:
		return fmt.Sprintf("stack %v %v", c.Class, c.Method)
	case javamethods.RecordCommand:
		return fmt.Sprintf("tt %v %v", c.Class, c.Method)
	case javamethods.RecordsCommand:
		return "tt -l"
	case javamethods.RecordDetailCommand:
		return fmt.Sprintf("tt -i %d", c.Index)
	case javamethods.ClassesCommand:
		return fmt.Sprintf("sc %v", c.Class)
	case javamethods.MethodsCommand:
		return fmt.Sprintf("sm %v %v", c.Class, c.Method)
	case javamethods.ResetCommand:
		return fmt.Sprintf("reset %v", c.Class)
	default:
		return fmt.Sprintf("%T", command)
	}
}

// ParseCommand reads the command of a request that is no [Heartbeat]. The error is a *ProtocolError, or
// javamethods.ErrUnsupported if the type is unknown.
func ParseCommand(r Request, codes Codes) (javamethods.Command, error) {
	if !codes.contains(r.Type) {
		return nil, fmt.Errorf("request type %#04x: %w", uint16(r.Type), javamethods.ErrUnsupported)
	}
	var a requestData
	err := a.read(r.Data)
	if err != nil && len(r.Data) <= DefaultMaxTolerated && !isJSON(r.Data) {
		if strict := tolerate(r.Data); strict != nil {
			err = a.read(strict)
		}
	}
	if err != nil {
		return nil, err
	}
	command := a.command(r.Type, codes)
	return command, a.close()
}

// contains reports whether a type is known.
func (c Codes) contains(t RequestType) bool {
	return Version <= t && t <= Methods || t != 0 && (t == c.Sessions || t == c.Stack || t == c.Records || t == c.RecordDetail)
}

// requestData reads the data of a request of any type.
type requestData struct {
	scanner
	class, method javamethods.Pattern
	regexp        bool
	fields        bool
	cycle         time.Duration
	limit         javamethods.Limit
	index         int64
}

func (a *requestData) read(data []byte) error {
	*a = requestData{index: -1}
	if len(data) == 0 {
		return nil
	}
	a.open(data)
	a.members(func(key []byte) {
		switch string(key) {
		case "class-pattern":
			a.class = a.pattern()
		case "method-pattern":
			a.method = a.pattern()
		case "is-regex":
			a.regexp = a.boolean()
		case "is-display-fields":
			a.fields = a.boolean()
		case "cycle":
			a.cycle = time.Duration(a.integer(1, math.MaxInt32)) * time.Second
		case "limit":
			a.limit = javamethods.Limit(max(0, a.integer(-1, math.MaxInt32)))
		case "index":
			a.index = a.integer(0, math.MaxInt64)
		default:
			a.skip()
		}
	})
	return a.close()
}

func (a *requestData) pattern() javamethods.Pattern {
	at := a.at
	text, _ := a.scalar()
	pattern, err := javamethods.NewPattern(string(text))
	if err != nil {
		a.unexpectedValue(at, "a pattern: "+err.Error(), text)
	}
	return pattern
}

// command returns the command of a known type. The scanner's close reports a missing member.
func (a *requestData) command(t RequestType, codes Codes) javamethods.Command {
	switch t {
	case Version:
		return javamethods.VersionCommand{}
	case Monitor:
		a.require(a.cycle > 0, "cycle")
		return javamethods.MonitorCommand{Target: a.target(), Cycle: a.cycle}
	case Reset:
		a.require(a.class != javamethods.Pattern{}, "class-pattern")
		return javamethods.ResetCommand{Class: a.class, Regexp: a.regexp}
	case Classes:
		a.require(a.class != javamethods.Pattern{}, "class-pattern")
		return javamethods.ClassesCommand{Class: a.class, Regexp: a.regexp, Fields: a.fields}
	case Methods:
		return javamethods.MethodsCommand{Target: a.target()}
	case codes.Sessions:
		return javamethods.SessionsCommand{}
	case codes.Stack:
		return javamethods.StackCommand{Target: a.target(), Limit: a.limit}
	case codes.Records:
		return javamethods.RecordsCommand{}
	default:
		a.require(a.index >= 0, "index")
		return javamethods.RecordDetailCommand{Index: a.index}
	}
}

func (a *requestData) target() javamethods.Target {
	a.require(a.class != javamethods.Pattern{} && a.method != javamethods.Pattern{}, "class-pattern and method-pattern")
	return javamethods.Target{Class: a.class, Method: a.method, Regexp: a.regexp}
}

// require fails if a request lacks a member.
func (a *requestData) require(present bool, expected string) {
	if !present {
		a.fail(0, expected, "a request without it")
	}
}
