// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"bytes"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// callSource is what a call event is made of.
type callSource uint8

const (
	// sourceNone: the event is no call event.
	sourceNone callSource = iota
	// sourceAddress: the function is an address.
	sourceAddress
	// sourceTop: an exit that doesn't say of what.
	sourceTop
	// sourceRecord: a log record of java.util.logging that may be a call record.
	sourceRecord
	// sourceRule: a rule of the configuration.
	sourceRule
)

// callPlan says whether events of a class are call events.
type callPlan struct {
	source callSource
	kind   callevent.Kind
	// address is for sourceAddress.
	address *ctf.Field
	// The fields of a log record.
	message, class, method text
	level, thread          number
	// rule is for sourceRule, with the fields that have its name and key, if any.
	rule      rulePart
	name, key *ctf.Field
}

// rulePart is one of the two events of a rule.
type rulePart struct {
	rule  *CallRule
	index int
	kind  callevent.Kind
}

// rulesByEvent are the rules, by the names of their events.
func rulesByEvent(rules []CallRule) map[string]rulePart {
	parts := make(map[string]rulePart, 2*len(rules))
	for i := range rules {
		r := &rules[i]
		parts[r.Entry] = rulePart{rule: r, index: i, kind: callevent.KindEnter}
		parts[r.Exit] = rulePart{rule: r, index: i, kind: callevent.KindExit}
	}
	return parts
}

// Events of LTTng-UST's libraries that record function calls.
const (
	cygEntry     = "lttng_ust_cyg_profile:func_entry"
	cygExit      = "lttng_ust_cyg_profile:func_exit"
	cygFastEntry = "lttng_ust_cyg_profile_fast:func_entry"
	cygFastExit  = "lttng_ust_cyg_profile_fast:func_exit"
	julEvent     = "lttng_jul:event"
)

// newCallPlan says what the events of a class are. A class of a known name without the
// fields that it should have is none of its kind.
func newCallPlan(class *ctf.EventClass, rules map[string]rulePart) callPlan {
	if part, ok := rules[class.Name]; ok {
		return newRulePlan(class, part)
	}
	switch class.Name {
	case cygEntry, cygFastEntry:
		return newAddressPlan(class, callevent.KindEnter)
	case cygExit:
		return newAddressPlan(class, callevent.KindExit)
	case cygFastExit:
		return callPlan{source: sourceTop, kind: callevent.KindExitTop}
	case julEvent:
		return newJULPlan(class)
	}
	return callPlan{}
}

func newAddressPlan(class *ctf.EventClass, kind callevent.Kind) callPlan {
	address := numberAt(class, metadata.EventFields, "addr")
	if !address.there() || address.guarded {
		return callPlan{}
	}
	return callPlan{source: sourceAddress, kind: kind, address: address.field}
}

func newJULPlan(class *ctf.EventClass) callPlan {
	p := callPlan{
		source:  sourceRecord,
		message: textAt(class, metadata.EventFields, "msg"),
		class:   textAt(class, metadata.EventFields, "class_name"),
		method:  textAt(class, metadata.EventFields, "method_name"),
		level:   numberAt(class, metadata.EventFields, "int_loglevel"),
		thread:  numberAt(class, metadata.EventFields, "int_threadid"),
	}
	if !p.message.there() || !p.method.there() || !p.level.there() {
		return callPlan{}
	}
	return p
}

func newRulePlan(class *ctf.EventClass, part rulePart) callPlan {
	return callPlan{
		source: sourceRule, kind: part.kind, rule: part,
		name: scalarField(class, part.rule.NameField), key: scalarField(class, part.rule.KeyField),
	}
}

// scalarField is the field at a path, in the payload or else in a context, that can be
// a name or a key; nil: there is none.
func scalarField(class *ctf.EventClass, path string) *ctf.Field {
	if path == "" {
		return nil
	}
	for _, scope := range [...]metadata.Scope{metadata.EventFields, metadata.EventContext, metadata.EventCommonContext} {
		f := class.Field(scope, path)
		if f != nil && (f.Kind == ctf.Int || f.Kind == ctf.Uint || f.Kind == ctf.Text) {
			return f
		}
	}
	return nil
}

// What java.util.logging.Logger writes at the level FINER: entering(), exiting() and
// throwing().
var (
	wordEntry  = []byte("ENTRY")
	wordReturn = []byte("RETURN")
	wordThrow  = []byte("THROW")
)

// callRecord says which call event a message of level FINER is, 0: none, and what
// follows the word: the arguments of a call or its return value.
//
// The contract of throwing() says that the method is about to end by an exception, so
// it leaves the method; the record doesn't have the exception's type.
func callRecord(message []byte) (kind callevent.Kind, rest []byte) {
	switch {
	case bytes.Equal(message, wordThrow):
		return callevent.KindUnwind, nil
	case begins(message, wordEntry):
		return callevent.KindEnter, message[min(len(wordEntry)+1, len(message)):]
	case begins(message, wordReturn):
		return callevent.KindExit, message[min(len(wordReturn)+1, len(message)):]
	default:
		return 0, nil
	}
}

// begins reports whether message is a word, or begins with it and a space.
func begins(message, word []byte) bool {
	return bytes.HasPrefix(message, word) && (len(message) == len(word) || message[len(word)] == ' ')
}
