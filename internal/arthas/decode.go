// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthas

import (
	"math"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// decoders read the results of each type. The server sends more types, for commands that this package does not have.
var decoders = map[string]func(*reader) Result{
	"version":      func(r *reader) Result { return r.version() },
	"session":      func(r *reader) Result { return r.sessionState() },
	"enhancer":     func(r *reader) Result { return r.enhanced() },
	"reset":        func(r *reader) Result { return r.reset() },
	"monitor":      func(r *reader) Result { return r.monitor() },
	"trace":        func(r *reader) Result { return r.trace() },
	"stack":        func(r *reader) Result { return r.callStack() },
	"watch":        func(r *reader) Result { return r.watch() },
	"tt":           func(r *reader) Result { return r.records() },
	"sc":           func(r *reader) Result { return r.classes() },
	"sm":           func(r *reader) Result { return r.methodResult() },
	"memory":       func(r *reader) Result { return r.memory() },
	"dashboard":    func(r *reader) Result { return r.dashboard() },
	"thread":       func(r *reader) Result { return r.threads() },
	"jvm":          func(r *reader) Result { return r.jvm() },
	"profiler":     func(r *reader) Result { return r.profiler() },
	"row_affect":   func(r *reader) Result { return r.rows() },
	"message":      func(r *reader) Result { return r.message() },
	"welcome":      func(r *reader) Result { return r.welcome() },
	"command":      func(r *reader) Result { return r.commandEcho() },
	"status":       func(r *reader) Result { return r.status() },
	"input_status": func(r *reader) Result { return r.inputStatus() },
	"shutdown":     func(r *reader) Result { return r.shutdown() },
}

// item is a result with the job that it is of: 0 for those of the session. The result is nil if its type is not known.
type item struct {
	job    int64
	result Result
	// json is the result as it arrived. It is valid as long as the answer.
	json []byte
	// repeat is the hash of a result that the server repeats.
	repeat uint64
}

// items reads results. A result of a known type with a wrong value becomes a Malformed, and the next ones are read.
func (r *reader) items() (items []item) {
	for range r.array("a list of results") {
		items = append(items, r.item())
	}
	return items
}

// item reads the fields that all results have, then the whole result by its type: the type is usually the last field.
// The first reading finds all errors of JSON, so errors of the second are wrong values only.
func (r *reader) item() (it item) {
	kind := ""
	r.next()
	begin, values, depth, open := r.at, r.values, r.depth, len(r.open)
	for key := range r.object("a result") {
		switch string(key) {
		case "type":
			kind = r.name("the type of a result")
		case "jobId":
			it.job = r.integer("the number of a job")
		default:
			r.skip()
		}
	}
	end := r.at
	if r.err != nil {
		return it
	}
	it.json = r.data[begin:end]
	decode, known := decoders[kind]
	if !known {
		r.ignored++
		return it
	}
	r.at, r.values = begin, values
	it.result = decode(r)
	if r.err != nil {
		it.result = &Malformed{Type: kind, Err: r.err}
		r.err, r.at, r.depth, r.open = nil, end, depth, r.open[:open]
	}
	return it
}

// common skips a field that all results have, and ignores an unknown one.
func (r *reader) common(key []byte) {
	switch string(key) {
	case "type", "jobId":
		r.skip()
	default:
		r.ignore()
	}
}

func (r *reader) version() *Version {
	var v Version
	for key := range r.object("a version") {
		if string(key) == "version" {
			v.Text = r.name("a version")
		} else {
			r.common(key)
		}
	}
	return &v
}

func (r *reader) sessionState() *SessionState {
	var s SessionState
	for key := range r.object("a session") {
		switch string(key) {
		case "javaPid":
			s.ProcessID = r.integer("the id of a process")
		case "sessionId":
			s.SessionID = r.text("the ID of a session")
		case "userId":
			s.UserID = r.text("the ID of a user")
		case "agentId", "tunnelServer", "statUrl", "tunnelConnected":
			r.skip()
		default:
			r.common(key)
		}
	}
	return &s
}

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

func (r *reader) classes() *Classes {
	var c Classes
	for key := range r.object("classes") {
		switch string(key) {
		case "classNames":
			c.Names = r.nameList()
		case "classInfo":
			c.Detail = r.class()
		case "detailed", "withField", "segment", "matchedClassLoaders", "classLoaderClass":
			r.skip()
		default:
			r.common(key)
		}
	}
	return &c
}

func (r *reader) nameList() (names []string) {
	for range r.array("a list of names") {
		names = append(names, r.name("a name"))
	}
	return names
}

func (r *reader) class() *Class {
	var c Class
	for key := range r.object("a class") {
		switch string(key) {
		case "name":
			c.Name = r.name("the name of a class")
		case "codeSource":
			c.CodeSource = r.text("a location")
		case "modifier":
			c.Modifier = r.name("modifiers")
		case "classLoaderHash":
			c.LoaderHash = r.name("the hash of a class loader")
		case "classloader":
			c.Loaders = r.nameList()
		case "interfaces":
			c.Interfaces = r.nameList()
		case "superClass":
			c.Supers = r.nameList()
		case "interface":
			c.Interface = r.boolean("true or false")
		case "synthetic":
			c.Synthetic = r.boolean("true or false")
		default:
			r.skip()
		}
	}
	return &c
}

func (r *reader) methodResult() *Method {
	var m Method
	for key := range r.object("a method") {
		switch string(key) {
		case "methodInfo":
			r.method(&m)
		case "detail", "matchedClassLoaders", "classLoaderClass":
			r.skip()
		default:
			r.common(key)
		}
	}
	return &m
}

func (r *reader) method(m *Method) {
	for key := range r.object("a method") {
		switch string(key) {
		case "declaringClass":
			m.Class = r.name("the name of a class")
		case "methodName":
			m.Name = r.name("the name of a method")
		case "descriptor":
			m.Descriptor = r.name("a descriptor")
		case "constructor":
			m.Constructor = r.boolean("true or false")
		case "modifier":
			m.Modifier = r.name("modifiers")
		case "returnType":
			m.ReturnType = r.name("a type")
		case "parameters":
			m.Parameters = r.nameList()
		case "annotations", "exceptions", "classLoaderHash":
			r.skip()
		default:
			r.ignore()
		}
	}
}

func (r *reader) memory() *Memory {
	var m Memory
	for key := range r.object("memory") {
		if string(key) == "memoryInfo" {
			m.Pools = r.pools()
		} else {
			r.common(key)
		}
	}
	return &m
}

// pools reads the pools of all kinds.
func (r *reader) pools() (pools []MemoryPool) {
	for key := range r.object("kinds of memory") {
		kind := r.names.Intern(key)
		for range r.array("a list of pools") {
			pools = append(pools, r.pool(kind))
		}
	}
	return pools
}

func (r *reader) pool(kind string) MemoryPool {
	p := MemoryPool{Kind: kind}
	for key := range r.object("a pool of memory") {
		switch string(key) {
		case "name":
			p.Name = r.name("the name of a pool")
		case "used":
			p.Used = r.count("a number of bytes")
		case "total":
			p.Committed = r.count("a number of bytes")
		case "max":
			p.Max = r.integer("a number of bytes")
			p.HasMax = p.Max >= 0
		case "type":
			r.skip()
		default:
			r.ignore()
		}
	}
	if !p.HasMax {
		p.Max = 0
	}
	return p
}

func (r *reader) dashboard() *Dashboard {
	var d Dashboard
	for key := range r.object("a dashboard") {
		switch string(key) {
		case "threads":
			d.Threads = r.threadStates(d.Threads)
		case "memoryInfo":
			d.Pools = r.pools()
		case "gcInfos":
			for range r.array("a list of collectors") {
				d.Collectors = append(d.Collectors, r.collector())
			}
		case "runtimeInfo":
			d.Runtime = r.runtime()
		case "tomcatInfo":
			r.skip()
		default:
			r.common(key)
		}
	}
	return &d
}

func (r *reader) collector() (c GarbageCollector) {
	for key := range r.object("a collector") {
		switch string(key) {
		case "name":
			c.Name = r.name("the name of a collector")
		case "collectionCount":
			c.Collections = max(0, r.integer("a number of collections"))
		case "collectionTime":
			c.Time = r.wholeMillis("a duration in milliseconds").Duration
		default:
			r.ignore()
		}
	}
	return c
}

func (r *reader) runtime() (run Runtime) {
	for key := range r.object("a runtime") {
		switch string(key) {
		case "osName":
			run.OSName = r.name("the name of an operating system")
		case "osVersion":
			run.OSVersion = r.name("the version of an operating system")
		case "javaVersion":
			run.JavaVersion = r.name("a version")
		case "javaHome":
			run.JavaHome = r.name("a folder")
		case "processors":
			run.Processors = r.count("a number of processors")
		case "systemLoadAverage":
			load, is := r.decimal("a load")
			if run.HasLoadAverage = is && load >= 0; run.HasLoadAverage {
				run.LoadAverage = load
			}
		case "uptime":
			run.Uptime = r.wholeSeconds("a duration in seconds")
		case "timestamp":
			run.Time = r.milliseconds("an instant in milliseconds")
		default:
			r.ignore()
		}
	}
	return run
}

func (r *reader) wholeSeconds(expected string) time.Duration {
	r.next()
	begin := r.at
	seconds := r.count(expected)
	if seconds > math.MaxInt64/int64(time.Second) {
		r.fail(begin, expected, r.excerpt(begin))
		return 0
	}
	return time.Duration(seconds) * time.Second
}

func (r *reader) threads() *Threads {
	var t Threads
	for key := range r.object("threads") {
		switch string(key) {
		case "threadStats", "busyThreads":
			t.Threads = r.threadStates(t.Threads)
		case "threadStateCount":
			t.States = make(map[string]int64)
			for state := range r.object("numbers of threads") {
				t.States[r.names.Intern(state)] = r.count("a number of threads")
			}
		case "threadInfo", "blockingLockInfo", "all":
			r.skip()
		default:
			r.common(key)
		}
	}
	return &t
}

func (r *reader) threadStates(states []ThreadState) []ThreadState {
	for range r.array("a list of threads") {
		states = append(states, r.threadState())
	}
	return states
}

func (r *reader) threadState() (t ThreadState) {
	for key := range r.object("a thread") {
		switch string(key) {
		case "id":
			t.ID = r.integer("the ID of a thread")
		case "name":
			t.Name = r.name("the name of a thread")
		case "group":
			t.Group = r.name("the group of a thread")
		case "state":
			t.State = r.name("the state of a thread")
		case "daemon":
			t.Daemon = r.boolean("true or false")
		case "priority":
			t.Priority = r.small("a priority")
		case "cpu":
			cpu, _ := r.decimal("a number of percent")
			t.CPU = max(0, cpu)
		case "time":
			t.CPUTime = r.wholeMillis("a duration in milliseconds")
		case "stackTrace":
			t.Frames = r.frames()
		default:
			// A busy thread has a dozen more fields, which no one asks for.
			r.skip()
		}
	}
	return t
}

func (r *reader) jvm() *JVM {
	var j JVM
	for key := range r.object("a JVM") {
		if string(key) != "jvmInfo" {
			r.common(key)
			continue
		}
		for key := range r.object("groups of properties") {
			group := r.names.Intern(key)
			for range r.array("a list of properties") {
				j.Properties = append(j.Properties, r.property(group))
			}
		}
	}
	return &j
}

func (r *reader) property(group string) Property {
	p := Property{Group: group}
	for key := range r.object("a property") {
		switch string(key) {
		case "name":
			p.Name = r.name("the name of a property")
		case "desc":
			p.Description = r.name("a description")
		case "value":
			p.JSON = r.raw()
		default:
			r.ignore()
		}
	}
	return p
}

func (r *reader) profiler() *Profiler {
	var p Profiler
	for key := range r.object("an answer of the profiler") {
		switch string(key) {
		case "action":
			p.Action = r.name("an action")
		case "executeResult":
			p.Text = r.wholeText("an answer")
		case "outputFile":
			p.File = r.text("the name of a file")
		case "format":
			p.Format = r.name("a format")
		case "actionArg", "supportedActions", "duration":
			r.skip()
		default:
			r.common(key)
		}
	}
	return &p
}

func (r *reader) rows() *Rows {
	var rows Rows
	for key := range r.object("a number of rows") {
		switch string(key) {
		case "rowCount":
			rows.Count = r.integer("a number of rows")
		case "affect":
			r.skip()
		default:
			r.common(key)
		}
	}
	return &rows
}

func (r *reader) message() *Message { return &Message{Text: r.messageText("a message")} }

// messageText reads a result with only a message.
func (r *reader) messageText(expected string) (text string) {
	for key := range r.object(expected) {
		switch string(key) {
		case "message":
			text = r.text("a message")
		case "graceful", "command", "state":
			r.skip()
		default:
			r.common(key)
		}
	}
	return text
}

func (r *reader) commandEcho() *commandEcho {
	return &commandEcho{message: r.messageText("an accepted command")}
}

func (r *reader) shutdown() *shutdown { return &shutdown{message: r.messageText("a shutdown")} }

func (r *reader) welcome() *welcome {
	var w welcome
	for key := range r.object("a welcome") {
		switch string(key) {
		case "pid":
			w.processID = r.integer("the id of a process")
		case "version":
			w.version = r.name("a version")
		case "mainClass":
			w.mainClass = r.name("the name of a class")
		case "time":
			w.time = r.timestamp("a time")
		case "wiki", "tutorials":
			r.skip()
		default:
			r.common(key)
		}
	}
	return &w
}

func (r *reader) status() *status {
	var s status
	for key := range r.object("the end of a job") {
		switch string(key) {
		case "statusCode":
			s.code = r.small("a status code")
		case "message":
			s.message = r.text("a message")
		default:
			r.common(key)
		}
	}
	return &s
}

func (r *reader) inputStatus() *inputStatus {
	var s inputStatus
	for key := range r.object("the state of input") {
		if string(key) == "inputStatus" {
			s.value = r.name("the state of input")
		} else {
			r.common(key)
		}
	}
	return &s
}
