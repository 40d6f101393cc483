// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthas

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
