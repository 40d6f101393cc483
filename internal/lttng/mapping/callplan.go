// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"bytes"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// CallSource is the kind of event from which a call event is made.
type CallSource uint8

const (
	// CallNone events are no call events.
	CallNone CallSource = iota
	// CallAddress events have the address of the function.
	CallAddress
	// CallTop events are exits without a function.
	CallTop
	// CallRecord events are log records of java.util.logging. Some of these are call records.
	CallRecord
)

// CallPlan determines whether events of a class are call events without a rule, and their fields.
type CallPlan struct {
	Source CallSource
	// Kind is the kind of call event; for CallRecord see CallOfRecord.
	Kind callevent.Kind
	// Class and Method name the function of a log record. Thread is the runtime's number of its
	// thread.
	Class, Method Text
	Thread        Number

	address, site *ctf.Field
	message       Text
	level         Number
}

// Names of the events of LTTng-UST's libraries that record function calls.
const (
	EventCygEntry     = "lttng_ust_cyg_profile:func_entry"
	EventCygExit      = "lttng_ust_cyg_profile:func_exit"
	EventCygFastEntry = "lttng_ust_cyg_profile_fast:func_entry"
	EventCygFastExit  = "lttng_ust_cyg_profile_fast:func_exit"
)

// newCallPlan returns the call plan of a class. Events with a known name but without its fields are no call events.
func newCallPlan(class *ctf.EventClass) CallPlan {
	switch class.Name {
	case EventCygEntry, EventCygFastEntry:
		return newAddressPlan(class, callevent.KindEnter)
	case EventCygExit:
		return newAddressPlan(class, callevent.KindExit)
	case EventCygFastExit:
		return CallPlan{Source: CallTop, Kind: callevent.KindExitTop}
	case EventJUL:
		return newJULPlan(class)
	}
	return CallPlan{}
}

func newAddressPlan(class *ctf.EventClass, kind callevent.Kind) CallPlan {
	address := numberAt(class, metadata.EventFields, "addr")
	if !address.exists() || address.guarded {
		return CallPlan{}
	}
	p := CallPlan{Source: CallAddress, Kind: kind, address: address.field}
	if site := numberAt(class, metadata.EventFields, "call_site"); site.exists() && !site.guarded {
		p.site = site.field
	}
	return p
}

func newJULPlan(class *ctf.EventClass) CallPlan {
	p := CallPlan{
		Source:  CallRecord,
		message: textAt(class, metadata.EventFields, "msg"),
		Class:   textAt(class, metadata.EventFields, "class_name"),
		Method:  textAt(class, metadata.EventFields, "method_name"),
		level:   numberAt(class, metadata.EventFields, "int_loglevel"),
		Thread:  numberAt(class, metadata.EventFields, "int_threadid"),
	}
	if !p.message.exists() || !p.Method.exists() || !p.level.exists() {
		return CallPlan{}
	}
	return p
}

// Address returns the address of the function of a CallAddress event.
func (p *CallPlan) Address(v *ctf.Values) uint64 { return v.Uint(p.address) }

// Site returns the return address of the function around the call of a CallAddress event, or 0 if it is not recorded.
func (p *CallPlan) Site(v *ctf.Values) uint64 {
	if p.site == nil {
		return 0
	}
	return v.Uint(p.site)
}

// The messages of java.util.logging.Logger's methods entering(), exiting() and throwing(), at the
// level FINER.
var (
	wordEntry  = []byte("ENTRY")
	wordReturn = []byte("RETURN")
	wordThrow  = []byte("THROW")
)

// CallOfRecord returns the kind of call that a log record reports, and its arguments or its return value. It returns
// kind 0 if the record reports no call.
//
// By the contract of throwing(), an exception is about to end the method, so it leaves the method. The record lacks
// the exception's type.
func (p *CallPlan) CallOfRecord(v *ctf.Values) (kind callevent.Kind, values []byte) {
	if level, ok := p.level.Value(v); !ok || level != JULFiner {
		return 0, nil
	}
	message := p.message.Bytes(v)
	switch {
	case bytes.Equal(message, wordThrow):
		return callevent.KindUnwind, nil
	case startsWithWord(message, wordEntry):
		return callevent.KindEnter, message[min(len(wordEntry)+1, len(message)):]
	case startsWithWord(message, wordReturn):
		return callevent.KindExit, message[min(len(wordReturn)+1, len(message)):]
	default:
		return 0, nil
	}
}

// startsWithWord reports whether message is a word, or starts with it and a space.
func startsWithWord(message, word []byte) bool {
	return bytes.HasPrefix(message, word) && (len(message) == len(word) || message[len(word)] == ' ')
}
