// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthas

import (
	"math"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// The results of commands that instrument classes.

func (r *reader) enhanced() *Enhanced {
	var e Enhanced
	for key := range r.object("the result of instrumentation") {
		switch string(key) {
		case "effect":
			e.Affected, e.OverLimit = r.affected()
		case "success":
			e.Success = r.boolean("true or false")
		case "message":
			e.Message = r.text("a message")
		default:
			r.common(key)
		}
	}
	return &e
}

func (r *reader) reset() *Reset {
	var reset Reset
	for key := range r.object("the result of a reset") {
		if string(key) == "affect" {
			reset.Affected, _ = r.affected()
		} else {
			r.common(key)
		}
	}
	return &reset
}

func (r *reader) affected() (a Affected, overLimit string) {
	for key := range r.object("numbers of classes and methods") {
		switch string(key) {
		case "classCount":
			a.Classes = r.count("a number of classes")
		case "methodCount":
			a.Methods = r.count("a number of methods")
		case "cost":
			a.Took = r.wholeMillis("a duration in milliseconds").Duration
		case "overLimitMsg":
			overLimit = r.text("a message")
		case "listenerId", "throwable", "classDumpFiles", "methods":
			r.skip()
		default:
			r.ignore()
		}
	}
	return a, overLimit
}

// wholeMillis reads a duration in whole milliseconds. A negative one is not known.
func (r *reader) wholeMillis(expected string) Cost {
	if r.next() == 'n' {
		r.skip()
		return Cost{}
	}
	begin := r.at
	ms := r.integer(expected)
	switch {
	case ms < 0 || r.err != nil:
		return Cost{}
	case ms > math.MaxInt64/int64(time.Millisecond):
		r.fail(begin, expected, r.excerpt(begin))
		return Cost{}
	}
	return Cost{Duration: time.Duration(ms) * time.Millisecond, Known: true}
}

func (r *reader) monitor() *Monitor {
	var m Monitor
	for key := range r.object("statistics") {
		if string(key) != "monitorDataList" {
			r.common(key)
			continue
		}
		for range r.array("a list of statistics") {
			m.Methods = append(m.Methods, r.methodStatistics())
		}
	}
	return &m
}

func (r *reader) methodStatistics() (s MethodStatistics) {
	r.next()
	begin := r.at
	for key := range r.object("statistics of a method") {
		switch string(key) {
		case "className":
			s.Class = r.name("the name of a class")
		case "methodName":
			s.Method = r.name("the name of a method")
		case "timestamp":
			s.Time = r.timestamp("a time")
		case "total":
			s.Calls = r.count("a number of calls")
		case "success":
			s.Succeeded = r.count("a number of calls")
		case "failed":
			s.Failed = r.count("a number of calls")
		case "cost":
			s.Sum = r.costMillis("a sum of durations in milliseconds")
		default:
			r.ignore()
		}
	}
	if s.Succeeded > s.Calls || s.Failed > s.Calls-s.Succeeded {
		r.fail(begin, "a total of at least the succeeded and failed calls", r.excerpt(begin))
	}
	return s
}

func (r *reader) trace() *Trace {
	var t Trace
	for key := range r.object("a trace") {
		switch string(key) {
		case "root":
			r.traceRoot(&t)
		case "nodeCount":
			// The count includes merged calls and no root, so it is no size for the nodes.
			r.skip()
		default:
			r.common(key)
		}
	}
	return &t
}

func (r *reader) traceRoot(t *Trace) {
	for key := range r.object("the root of a trace") {
		switch string(key) {
		case "threadName", "threadId", "daemon", "priority", "classloader":
			r.threadField(string(key), &t.Thread)
		case "timestamp":
			t.Time = r.timestamp("a time")
		case "traceId":
			t.TraceID = r.text("the ID of a trace")
		case "rpcId":
			t.RPCID = r.text("an ID")
		case "children":
			t.Nodes = r.traceNodes(t.Nodes, 0)
		case "type", "mark":
			r.skip()
		default:
			r.ignore()
		}
	}
}

// threadField reads one field of the thread of a call.
func (r *reader) threadField(key string, t *javamethods.Thread) {
	switch key {
	case "threadName":
		t.Name = r.name("the name of a thread")
	case "threadId":
		t.ID = r.integer("the ID of a thread")
	case "daemon":
		t.Daemon = r.boolean("true or false")
	case "priority":
		t.Priority = r.small("a priority")
	case "classloader":
		r.skip()
	}
}

// traceNodes appends nodes with all nodes below them.
func (r *reader) traceNodes(nodes []TraceNode, depth int32) []TraceNode {
	for range r.array("a list of calls") {
		at := len(nodes)
		nodes = append(nodes, TraceNode{})
		node := TraceNode{Depth: depth}
		for key := range r.object("a call") {
			switch string(key) {
			case "children":
				nodes = r.traceNodes(nodes, depth+1)
			case "className":
				node.Class = r.name("the name of a class")
			case "methodName":
				node.Method = r.name("the name of a method")
			case "lineNumber":
				node.Line = r.small("the number of a line")
			case "invoking":
				node.CallSite = r.boolean("true or false")
			case "throw":
				node.Throws = r.boolean("true or false")
			case "times":
				node.Calls = r.count("a number of calls")
			case "cost":
				node.Last = r.costNanos("a duration in nanoseconds")
			case "minCost":
				node.Min = r.costNanos("a duration in nanoseconds")
			case "maxCost":
				node.Max = r.costNanos("a duration in nanoseconds")
			case "totalCost":
				node.Total = r.costNanos("a duration in nanoseconds")
			case "exception":
				node.Exception = r.name("the type of an exception")
			case "message":
				node.Message = r.text("a message")
			case "type", "mark", "beginTimestamp", "endTimestamp", "throwExp":
				r.skip()
			default:
				r.ignore()
			}
		}
		if node.Calls == 0 && node.Exception == "" {
			node.Calls = 1
		}
		nodes[at] = node
	}
	return nodes
}

func (r *reader) callStack() *CallStack {
	var s CallStack
	for key := range r.object("a stack") {
		switch string(key) {
		case "ts":
			s.Time = r.timestamp("a time")
		case "threadName", "threadId", "daemon", "priority", "classloader":
			r.threadField(string(key), &s.Thread)
		case "traceId":
			s.TraceID = r.text("the ID of a trace")
		case "rpcId":
			s.RPCID = r.text("an ID")
		case "stackTrace":
			s.Frames = r.frames()
		case "cost":
			// It is always 0.
			r.skip()
		default:
			r.common(key)
		}
	}
	return &s
}

func (r *reader) frames() (frames []javamethods.Frame) {
	for range r.array("a list of frames") {
		var f javamethods.Frame
		for key := range r.object("a frame") {
			switch string(key) {
			case "className":
				f.Class = r.name("the name of a class")
			case "methodName":
				f.Method = r.name("the name of a method")
			case "fileName":
				f.File = r.name("the name of a file")
			case "lineNumber":
				f.Line = r.small("the number of a line")
			case "moduleName", "moduleVersion", "classLoaderName", "nativeMethod":
				r.skip()
			default:
				r.ignore()
			}
		}
		frames = append(frames, f)
	}
	return frames
}

func (r *reader) watch() *Watch {
	var w Watch
	for key := range r.object("a watched call") {
		switch string(key) {
		case "ts":
			w.Time = r.timestamp("a time")
		case "cost":
			w.Cost = r.costMillis("a duration in milliseconds")
		case "className":
			w.Class = r.name("the name of a class")
		case "methodName":
			w.Method = r.name("the name of a method")
		case "accessPoint":
			w.Point = r.name("a point of a call")
		case "value":
			w.Value = r.drawn()
		case "sizeLimit":
			r.skip()
		default:
			r.common(key)
		}
	}
	return &w
}

// drawn reads a value that the server usually draws as a text. If it is no text, the result is its JSON.
func (r *reader) drawn() string {
	if r.next() == '"' {
		return r.text("a value")
	}
	return r.raw()
}

func (r *reader) records() *Records {
	var records Records
	for key := range r.object("recorded calls") {
		switch string(key) {
		case "timeFragmentList":
			for range r.array("a list of recorded calls") {
				records.Calls = append(records.Calls, r.record())
			}
		case "timeFragment":
			records.Calls = append(records.Calls, r.record())
		case "first", "expand", "sizeLimit":
			r.skip()
		default:
			r.common(key)
		}
	}
	return &records
}

func (r *reader) record() (record Record) {
	for key := range r.object("a recorded call") {
		switch string(key) {
		case "index":
			record.Index = r.small("the index of a record")
		case "timestamp":
			record.Time = r.timestamp("a time")
		case "cost":
			record.Cost = r.costMillis("a duration in milliseconds")
		case "return":
			record.Returned = r.boolean("true or false")
		case "throw":
			record.Threw = r.boolean("true or false")
		case "object":
			record.Object = r.name("an object")
		case "className":
			record.Class = r.name("the name of a class")
		case "methodName":
			record.Method = r.name("the name of a method")
		case "params":
			for range r.array("a list of parameters") {
				record.Parameters = append(record.Parameters, r.parameter())
			}
		case "returnObj":
			record.Return = r.drawn()
		case "throwExp":
			record.Exception = r.drawn()
		default:
			r.ignore()
		}
	}
	return record
}

// parameter reads a parameter: an object with the value and the depth, or the value drawn as a text.
func (r *reader) parameter() (value string) {
	if r.next() != '{' {
		return r.drawn()
	}
	for key := range r.object("a parameter") {
		if string(key) == "object" {
			value = r.raw()
		} else {
			r.skip()
		}
	}
	return value
}
