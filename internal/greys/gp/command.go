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

	"github.com/callbraid/callbraid/internal/greys"
)

// nothing is the data of a request without parameters.
const nothing = "{}"

// AppendCommand adds the data of a command's request and returns its type. The error is greys.ErrUnsupported if GP has
// no such request or codes has no code for it. Otherwise it names the missing part of the command.
func AppendCommand(to []byte, command greys.Command, codes Codes) (RequestType, []byte, error) {
	requestType := codes.of(command)
	if requestType == 0 {
		return 0, to, fmt.Errorf("%w: GP has no request for it, or no code was configured", greys.ErrUnsupported)
	}
	if err := check(command); err != nil {
		return 0, to, err
	}
	w := object{to: append(to, '{')}
	switch c := command.(type) {
	case greys.MonitorCommand:
		w.text("class-pattern", c.Class.String())
		w.text("method-pattern", c.Method.String())
		w.text("cycle", strconv.FormatInt(int64(c.Cycle/time.Second), 10))
		w.text("is-regex", strconv.FormatBool(c.Regexp))
	case greys.ResetCommand:
		w.text("class-pattern", c.Class.String())
		w.text("is-regex", strconv.FormatBool(c.Regexp))
	case greys.ClassesCommand:
		w.text("class-pattern", c.Class.String())
		w.inventory(c.Regexp, c.Fields)
	case greys.MethodsCommand:
		w.text("class-pattern", c.Class.String())
		w.text("method-pattern", c.Method.String())
		w.inventory(c.Regexp, true) // as in the sample; methods have no fields
	case greys.StackCommand:
		w.text("class-pattern", c.Class.String())
		w.text("method-pattern", c.Method.String())
		w.text("condition-express", always)
		w.text("is-regex", strconv.FormatBool(c.Regexp))
		w.text("limit", limitText(c.Limit))
	case greys.RecordsCommand:
		w.text("condition-express", always)
	case greys.RecordDetailCommand:
		w.text("index", strconv.FormatInt(c.Index, 10))
		w.key("expend")
		w.to = append(w.to, `{"level":"1","format":"json"}`...)
	}
	return requestType, append(w.to, '}'), nil
}

// check returns an error if a command is incomplete.
func check(command greys.Command) error {
	switch c := command.(type) {
	case greys.MonitorCommand:
		if c.Cycle < time.Second || c.Cycle%time.Second != 0 {
			return fmt.Errorf("cycle is %v: expected whole seconds, at least 1", c.Cycle)
		}
		return checkPatterns(c.Class, c.Method)
	case greys.StackCommand:
		return checkPatterns(c.Class, c.Method)
	case greys.MethodsCommand:
		return checkPatterns(c.Class, c.Method)
	case greys.ClassesCommand:
		return checkPatterns(c.Class)
	case greys.ResetCommand:
		return checkPatterns(c.Class)
	}
	return nil
}

func checkPatterns(patterns ...greys.Pattern) error {
	if slices.Contains(patterns, greys.Pattern{}) {
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
func limitText(limit greys.Limit) string {
	if limit <= 0 {
		return "-1"
	}
	return strconv.FormatInt(int64(limit), 10)
}

// of returns the type of a command's request; 0 means that there is none.
func (c Codes) of(command greys.Command) RequestType {
	switch command.(type) {
	case greys.VersionCommand:
		return Version
	case greys.MonitorCommand:
		return Monitor
	case greys.ResetCommand:
		return Reset
	case greys.ClassesCommand:
		return Classes
	case greys.MethodsCommand:
		return Methods
	case greys.SessionsCommand:
		return c.Sessions
	case greys.StackCommand:
		return c.Stack
	case greys.RecordsCommand:
		return c.Records
	case greys.RecordDetailCommand:
		return c.RecordDetail
	default:
		return 0
	}
}

// nameOf returns the name of a command for errors, as in the server's console.
func nameOf(command greys.Command) string {
	switch c := command.(type) {
	case greys.VersionCommand:
		return "version"
	case greys.SessionsCommand:
		return "session"
	case greys.MonitorCommand:
		return fmt.Sprintf("monitor %v %v", c.Class, c.Method)
	case greys.TraceCommand:
		return fmt.Sprintf("trace %v %v", c.Class, c.Method)
	case greys.StackCommand:
		return fmt.Sprintf("stack %v %v", c.Class, c.Method)
	case greys.RecordCommand:
		return fmt.Sprintf("tt %v %v", c.Class, c.Method)
	case greys.RecordsCommand:
		return "tt -l"
	case greys.RecordDetailCommand:
		return fmt.Sprintf("tt -i %d", c.Index)
	case greys.ClassesCommand:
		return fmt.Sprintf("sc %v", c.Class)
	case greys.MethodsCommand:
		return fmt.Sprintf("sm %v %v", c.Class, c.Method)
	case greys.ResetCommand:
		return fmt.Sprintf("reset %v", c.Class)
	default:
		return fmt.Sprintf("%T", command)
	}
}

// ParseCommand reads the command of a request that is no [Heartbeat]. The error is a *ProtocolError, or
// greys.ErrUnsupported if the type is unknown.
func ParseCommand(r Request, codes Codes) (greys.Command, error) {
	if !codes.contains(r.Type) {
		return nil, fmt.Errorf("request type %#04x: %w", uint16(r.Type), greys.ErrUnsupported)
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
	class, method greys.Pattern
	regexp        bool
	fields        bool
	cycle         time.Duration
	limit         greys.Limit
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
			a.limit = greys.Limit(max(0, a.integer(-1, math.MaxInt32)))
		case "index":
			a.index = a.integer(0, math.MaxInt64)
		default:
			a.skip()
		}
	})
	return a.close()
}

func (a *requestData) pattern() greys.Pattern {
	at := a.at
	text, _ := a.scalar()
	pattern, err := greys.NewPattern(string(text))
	if err != nil {
		a.unexpectedValue(at, "a pattern: "+err.Error(), text)
	}
	return pattern
}

// command returns the command of a known type. The scanner's close reports a missing member.
func (a *requestData) command(t RequestType, codes Codes) greys.Command {
	switch t {
	case Version:
		return greys.VersionCommand{}
	case Monitor:
		a.require(a.cycle > 0, "cycle")
		return greys.MonitorCommand{Target: a.target(), Cycle: a.cycle}
	case Reset:
		a.require(a.class != greys.Pattern{}, "class-pattern")
		return greys.ResetCommand{Class: a.class, Regexp: a.regexp}
	case Classes:
		a.require(a.class != greys.Pattern{}, "class-pattern")
		return greys.ClassesCommand{Class: a.class, Regexp: a.regexp, Fields: a.fields}
	case Methods:
		return greys.MethodsCommand{Target: a.target()}
	case codes.Sessions:
		return greys.SessionsCommand{}
	case codes.Stack:
		return greys.StackCommand{Target: a.target(), Limit: a.limit}
	case codes.Records:
		return greys.RecordsCommand{}
	default:
		a.require(a.index >= 0, "index")
		return greys.RecordDetailCommand{Index: a.index}
	}
}

func (a *requestData) target() greys.Target {
	a.require(a.class != greys.Pattern{} && a.method != greys.Pattern{}, "class-pattern and method-pattern")
	return greys.Target{Class: a.class, Method: a.method, Regexp: a.regexp}
}

// require fails if a request lacks a member.
func (a *requestData) require(present bool, expected string) {
	if !present {
		a.fail(0, expected, "a request without it")
	}
}
