// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrol

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Agent is an agent of a receiver. Several goroutines call its methods. Do waits for the agent, and
// SendRecord for the pipeline, as long as the receiver does with other records.
type Agent interface {
	// ID identifies the agent in the collector: see [NewID].
	ID() string
	// Snapshot returns the current state of the agent.
	Snapshot() Snapshot
	// Do sends an order to the agent, and returns its answer. It returns when the context ends at
	// the latest. The error is an *Error. The order's arguments are those of a command of the
	// snapshot, checked by [Command.Parse].
	Do(ctx context.Context, order Order) (Answer, error)
	// SendRecord sends an order with its result as a log record, if the receiver has a pipeline for logs.
	// The extension calls it for every order, also for those that were refused before Do.
	SendRecord(record Record)
}

// Snapshot is the state of an agent at a moment. Times are zero, and other values empty, if they
// are not known. A connected agent has all of them, except Process, Commands and Counters.
type Snapshot struct {
	// Tracer is the type of the receiver, such as bytefrog, and Receiver the receiver's ID.
	Tracer   string
	Receiver string
	// Service is the service.name of the agent's telemetry.
	Service string
	// Address is where the agent is, host:port.
	Address string
	// Process is empty for a server with several processes.
	Process Process
	// State is a word of the tracer for the agent's state. It shows whether a server is connected.
	State string
	// Since is when the agent, or this life of it, was first there: for a server with several
	// processes, the begin of the connection.
	Since time.Time
	// LastSeen is the time of the agent's latest message.
	LastSeen time.Time
	// Commands are the agent's commands. They belong to the receiver and don't change.
	Commands []Command
	// Unfit has the commands that have no effect now, or would be refused, by their names, and the reason for a person. A
	// command can become unfit before an agent receives it, so Do checks it again.
	Unfit    map[string]string
	Counters []Counter
}

// NoneFits returns that no command fits, for one reason.
func NoneFits(commands []Command, reason string) map[string]string {
	unfit := make(map[string]string, len(commands))
	for i := range commands {
		unfit[commands[i].Name] = reason
	}
	return unfit
}

// Process is the traced program.
type Process struct {
	// PID is 0 where it is not known.
	PID  uint64
	Name string
}

// Counter is a number that the receiver has of an agent.
type Counter struct {
	Name string
	// Unit is by UCUM.
	Unit  string
	Value int64
}

// Order is a command for an agent, with arguments.
type Order struct {
	Command   string
	Arguments Arguments
	// By describes the client, for the record.
	By string
}

// Answer is the answer of an agent.
type Answer struct {
	// Message describes the result for a person.
	Message string
	// Details are further values, in the order of their display.
	Details []Detail
	// Items are the requested names, such as those of loggers.
	Items []string
}

// Detail is a value with a name.
type Detail struct{ Name, Value string }

// TextOf is the value of an attribute as text; empty: there is none.
func TextOf(attributes pcommon.Map, key string) string {
	if v, ok := attributes.Get(key); ok {
		return v.AsString()
	}
	return ""
}

// NewID makes an ID of 16 hexadecimal digits. It is a function of the words: the receiver's ID, and
// words that identify the agent in the receiver. For a server that is its configured address.
func NewID(words ...string) string {
	h := sha256.New()
	for _, word := range words {
		h.Write([]byte(word))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
