// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"bytes"
	"fmt"
	"hash/fnv"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// CallRule makes calls of a pair of events: an event named Entry enters a function, an event named Exit leaves it.
// The function's name is Name, or the value of NameField.
type CallRule struct {
	// Entry and Exit are the full names of events.
	Entry string `mapstructure:"entry"`
	Exit  string `mapstructure:"exit"`
	// Name is the name of the function.
	Name string `mapstructure:"name"`
	// NameField is the field of the entry that has the name; dots go into structures.
	NameField string `mapstructure:"name_field"`
	// KeyField is the field whose value pairs the events. If it is empty, the thread pairs them.
	KeyField string `mapstructure:"key_field"`
}

// ValidateCallRules returns the first error in the setting call_rules, with its remedy.
func ValidateCallRules(rules []CallRule) error {
	seen := map[string]string{}
	for i := range rules {
		r := &rules[i]
		at := fmt.Sprintf("call_rules[%d]", i)
		switch {
		case r.Entry == "" || r.Exit == "":
			return fmt.Errorf("%s: set entry and exit to full names of events, such as my_app:request_begin", at)
		case r.Entry == r.Exit:
			return fmt.Errorf("%s: entry and exit are both %q: set them to different events", at, r.Entry)
		case (r.Name == "") == (r.NameField == ""):
			return fmt.Errorf("%s: set either name, or name_field to a field of %s", at, r.Entry)
		}
		for _, event := range []string{r.Entry, r.Exit} {
			if other, twice := seen[event]; twice {
				return fmt.Errorf("%s: event %s is also in %s: an event can be in one rule only", at, event, other)
			}
			seen[event] = at
		}
	}
	return nil
}

// Rules are call rules by the names of their events.
type Rules map[string]rulePart

// rulePart is one of the two events of a rule.
type rulePart struct {
	rule  *CallRule
	index int
	kind  callevent.Kind
}

// NewRules returns the rules, which must have passed ValidateCallRules.
func NewRules(rules []CallRule) Rules {
	parts := make(Rules, 2*len(rules))
	for i := range rules {
		r := &rules[i]
		parts[r.Entry] = rulePart{rule: r, index: i, kind: callevent.KindEnter}
		parts[r.Exit] = rulePart{rule: r, index: i, kind: callevent.KindExit}
	}
	return parts
}

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
	// CallByRule events belong to a call rule.
	CallByRule
)

// CallPlan determines whether events of a class are call events, and their fields.
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
	// part is for CallByRule, with the fields that have the function's name and the key; nil: the
	// class lacks them.
	part      rulePart
	name, key *ctf.Field
}

// Names of the events of LTTng-UST's libraries that record function calls.
const (
	EventCygEntry     = "lttng_ust_cyg_profile:func_entry"
	EventCygExit      = "lttng_ust_cyg_profile:func_exit"
	EventCygFastEntry = "lttng_ust_cyg_profile_fast:func_entry"
	EventCygFastExit  = "lttng_ust_cyg_profile_fast:func_exit"
)

// newCallPlan returns the call plan of a class. Events with a known name but without its fields are no call events.
func newCallPlan(class *ctf.EventClass, rules Rules) CallPlan {
	if part, ok := rules[class.Name]; ok {
		return CallPlan{
			Source: CallByRule, Kind: part.kind, part: part,
			name: scalarAt(class, part.rule.NameField), key: scalarAt(class, part.rule.KeyField),
		}
	}
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

// PairsByKey reports whether a rule pairs the events by the value of a field.
func (p *CallPlan) PairsByKey() bool { return p.Source == CallByRule && p.part.rule.KeyField != "" }

// KeyField returns the name of the field by which a rule pairs the events.
func (p *CallPlan) KeyField() string { return p.part.rule.KeyField }

// AppendKey appends the value by which a rule pairs an event. It returns false if the event has no such value.
func (p *CallPlan) AppendKey(dst []byte, v *ctf.Values) ([]byte, bool) {
	if p.key == nil || !v.Present(p.key) {
		return dst, false
	}
	return appendScalar(dst, v, p.key), true
}

// KeyLane returns the ID of the lane of a key of the rule.
func (p *CallPlan) KeyLane(key []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte{byte(p.part.index), byte(p.part.index >> 8)})
	_, _ = h.Write(key)
	return h.Sum64() | callevent.LaneKey
}

// AppendFunction appends the name of the function of a rule's event. It returns false if the event
// is an exit that names no function.
func (p *CallPlan) AppendFunction(dst []byte, v *ctf.Values) ([]byte, bool) {
	switch {
	case p.part.rule.Name != "":
		dst = append(dst, p.part.rule.Name...)
	case p.name != nil && v.Present(p.name):
		dst = appendScalar(dst, v, p.name)
	case p.Kind == callevent.KindExit:
		return dst, false
	}
	if len(dst) == 0 {
		dst = append(dst, p.part.rule.Entry...)
	}
	return dst, true
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
