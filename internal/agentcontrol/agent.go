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

// Agent is one that a receiver has. Its methods are for several goroutines. Do waits for
// the agent, and Told for the pipeline for as long as the receiver does for others' records.
type Agent interface {
	// ID tells the agent from all others of the collector: see [NewID].
	ID() string
	// Snapshot is what is known of the agent now.
	Snapshot() Snapshot
	// Do has the agent do what it is ordered, and gives what it answered. It returns when
	// the context ends at the latest. The error is an *Error. The order's arguments are
	// those that the snapshot's command has, checked by [Command.Parse].
	Do(ctx context.Context, order Order) (Answer, error)
	// Told hands on what somebody wanted of the agent and what came of it as a log record,
	// if the receiver has a pipeline for those. It is called for every order, for those
	// that were refused before Do, too.
	Told(record Record)
}

// Snapshot is what is known of an agent at a moment. Times are zero, and other values
// empty, where something is not known.
type Snapshot struct {
	// Tracer is the type of the receiver, such as bytefrog, and Receiver the receiver's ID.
	Tracer   string
	Receiver string
	// Service is the service.name of what the agent sends.
	Service string
	// Address is where the agent is, host:port.
	Address string
	Process Process
	// State is a word of the tracer's: what the agent is doing.
	State string
	// Since is when the agent, or this life of it, was first there.
	Since time.Time
	// LastSeen is when it was heard of last.
	LastSeen time.Time
	// Commands are what it can be told. They belong to the receiver and don't change.
	Commands []Command
	Counters []Counter
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

// Order is what an agent is to do.
type Order struct {
	Command   string
	Arguments Arguments
	// By is who wants it, for the record.
	By string
}

// Answer is what an agent answered.
type Answer struct {
	// Message says what was done, for a person.
	Message string
	// Details are what is known of it, in the order in which they are shown.
	Details []Detail
	// Items are what was asked for, such as names of loggers.
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

// NewID makes an ID of 16 hexadecimal digits: always the same of the same words, which
// are the receiver's ID and what tells the agent from others of the receiver.
func NewID(words ...string) string {
	h := sha256.New()
	for _, word := range words {
		h.Write([]byte(word))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
