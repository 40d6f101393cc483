// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package logagent

import (
	"time"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// Options configure an agent. The zero value of a field is its default.
type Options struct {
	// Address is the daemon's host:port. It is not used if there is a PortFile.
	Address string
	// PortFile is the file with the daemon's port. Agents in Java read it before each connection, agents in Python
	// once. The daemon is on 127.0.0.1.
	PortFile string
	// Dialect is the version of the protocol. The default is 2.0.
	Dialect lttngagent.Dialect
	// Domain is the logging library. The default is JUL. Agents of Python behave like Python's, all others like those
	// of Java.
	Domain lttngagent.Domain
	// PID is the process ID in the registration.
	PID uint32
	// Loggers are the names of the program's loggers at the time of its first handler.
	Loggers []string
	// Retry is the time before the agent reconnects. The default is 3 s.
	Retry time.Duration
	// HandlerTimeout is the maximum time for which the program's first handler waits for "registration done". The
	// default is 6 s, in Python 5 s.
	HandlerTimeout time.Duration
	// ReplyDelay is the delay before each reply. The default is none.
	ReplyDelay time.Duration
	// Fault is a simulated fault.
	Fault Fault
	// Log logs events. Several goroutines call it. It may be nil.
	Log func(format string, args ...any)
}

// Times of real agents.
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
