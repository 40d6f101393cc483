// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package logagent

import (
	"time"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// Options are what an agent is. The zero value of a field is its default.
type Options struct {
	// Address is the daemon's, host:port, unless there is a PortFile.
	Address string
	// PortFile is the file that the daemon writes its port into. Agents in Java read it
	// whenever they connect, Python's once; the daemon is on 127.0.0.1.
	PortFile string
	// Dialect is how the agent speaks; default 2.0.
	Dialect lttngagent.Dialect
	// Domain is whose agent it is; default JUL. Python's behaves as Python's does, all
	// others as in Java.
	Domain lttngagent.Domain
	// PID is the process that the agent says it is in.
	PID uint32
	// Loggers are the names of those that the program has when its first handler is made.
	Loggers []string
	// Retry is how long the agent waits before it connects again; default 3 s.
	Retry time.Duration
	// HandlerTimeout is how long the program's first handler waits for "registration
	// done"; default 6 s, in Python 5 s.
	HandlerTimeout time.Duration
	// ReplyDelay is how long the agent thinks before each reply; default not at all.
	ReplyDelay time.Duration
	// Fault is what goes wrong.
	Fault Fault
	// Log is called with what happens, by several goroutines; nil: not.
	Log func(format string, args ...any)
}

// What real agents wait for.
const (
	DefaultRetry         = 3 * time.Second
	JavaHandlerTimeout   = 6 * time.Second
	PythonHandlerTimeout = 5 * time.Second
)

func (o Options) withDefaults() Options {
	if o.Domain == 0 {
		o.Domain = lttngagent.JUL
	}
	if o.Retry <= 0 {
		o.Retry = DefaultRetry
	}
	if o.HandlerTimeout <= 0 {
		o.HandlerTimeout = JavaHandlerTimeout
		if o.Domain == lttngagent.Python {
			o.HandlerTimeout = PythonHandlerTimeout
		}
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	return o
}
