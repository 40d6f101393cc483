// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// CallRule makes calls of pairs of events: an event of Entry enters a function, an event of Exit leaves it.
type CallRule struct {
	Entry RuleEvent `mapstructure:"entry"`
	Exit  RuleEvent `mapstructure:"exit"`
	// Name is the name of the function. {field} in it is the value of a field, {*} the text for the * of the event.
	// {field:device} is the number of a device as MAJOR:MINOR. An exit without such a field leaves the function that was
	// entered last.
	Name string `mapstructure:"name"`
	// NameField is the field that has the name; dots go into structures.
	NameField string `mapstructure:"name_field"`
	// KeyFields are the fields whose values pair the events, if both events have them.
	KeyFields []string `mapstructure:"key_field"`
	// KeyIsThread is set if the key is the number of the thread that a CPU runs. In a trace of the kernel, the calls belong
	// to the process of this thread.
	KeyIsThread bool `mapstructure:"key_is_thread"`
	// Lane is the owner of the stack of the calls. Empty: LaneKey with fields of a key, otherwise LaneThread.
	Lane Lane `mapstructure:"lane"`
	// Outermost is set if no other call of the lane can be open when a function is entered. Open calls end there,
	// truncated: the trace lacks their exits.
	Outermost bool `mapstructure:"outermost"`
	// Attributes are fields that become attributes of the spans. * stands for all fields. If one event leaves a function
	// and enters another, its fields belong to the one that it enters.
	Attributes []string `mapstructure:"attributes"`
	// ErrorField is a field of the exit. A negative number in it is an error number of Linux.
	ErrorField string `mapstructure:"error_field"`
}

// RuleEvent are the events that enter or leave a function.
type RuleEvent struct {
	// Event is the full name of the events. One * in it stands for any text.
	Event string `mapstructure:"event"`
	// KeyFields are like those of the rule, for this event.
	KeyFields []string `mapstructure:"key_field"`
	// Only and Except select events by values of fields. A field has one value, or a list of them.
	Only   map[string]any `mapstructure:"only"`
	Except map[string]any `mapstructure:"except"`
	// UnlessRunning leaves out the events whose key is a thread that runs on a CPU. It also leaves them out if the
	// state of the thread is not known.
	UnlessRunning bool `mapstructure:"unless_running"`
}

// UnmarshalText sets the name of the event, for settings that only have this name.
func (e *RuleEvent) UnmarshalText(text []byte) error {
	e.Event = string(text)
	return nil
}

// Lane is the owner of a call stack.
type Lane string

const (
	// LaneThread: the thread of the event, or the thread whose number is the key.
	LaneThread Lane = "thread"
	// LaneCPU: the CPU that recorded the event. With a key, each key has its own stack.
	LaneCPU Lane = "cpu"
	// LaneKey: the key.
	LaneKey Lane = "key"
)

// anyText stands for any text in names of events, and for all fields.
const anyText = "*"

// ValidateCallRules returns the first error in the setting call_rules, with its remedy.
func ValidateCallRules(rules []CallRule) error {
	for i := range rules {
		if err := rules[i].validate(); err != nil {
			return fmt.Errorf("call_rules[%d]: %w", i, err)
		}
	}
	return nil
}

func (r *CallRule) validate() error {
	entries, exits := strings.Count(r.Entry.Event, anyText), strings.Count(r.Exit.Event, anyText)
	switch {
	case r.Entry.Event == "" || r.Exit.Event == "":
		return errors.New("set entry and exit to full names of events, such as my_app:request_begin")
	case entries > 1 || exits > 1:
		return errors.New("entry and exit can have one * each: leave out the others")
	case exits > entries:
		return errors.New("exit has a * and entry has none: write a * in entry too")
	case r.Name != "" && r.NameField != "", r.Name == "" && r.NameField == "" && entries == 0:
		return fmt.Errorf("set either name, or name_field to a field of %s", r.Entry.Event)
	case r.Exit.UnlessRunning:
		return errors.New("exit.unless_running is set: only entries can have it")
	}
	name, err := parseName(r.Name, entries > 0)
	if err != nil {
		return err
	}
	if r.isOneEvent() && r.lane() == LaneThread && (r.NameField != "" || slices.ContainsFunc(name, func(p namePart) bool { return p.field != "" })) {
		return fmt.Errorf("entry and exit are both %q and the lane is %s: set name to a text without fields, so that an exit names its call", r.Entry.Event, LaneThread)
	}
	if err := r.validateKeys(); err != nil {
		return err
	}
	for _, event := range []*RuleEvent{&r.Entry, &r.Exit} {
		for _, values := range []map[string]any{event.Only, event.Except} {
			for field, value := range values {
				if _, ok := valuesOf(value); !ok {
					return fmt.Errorf("only and except of %s: set field %s to a text or a whole number, or to a list of them", event.Event, field)
				}
			}
		}
	}
	if slices.Contains(r.Attributes, "") {
		return errors.New("attributes has an empty name: set it to names of fields, or to * for all")
	}
	return r.validateForms(name)
}

// validateForms returns the first error in the forms of fields. name are the parts of the rule's name.
func (r *CallRule) validateForms(name []namePart) error {
	fields := slices.Concat(r.Attributes, r.keysOf(&r.Entry), r.keysOf(&r.Exit))
	if r.NameField != "" {
		fields = append(fields, r.NameField)
	}
	for _, part := range name {
		if part.field != "" {
			fields = append(fields, part.field)
		}
	}
	for _, event := range []*RuleEvent{&r.Entry, &r.Exit} {
		fields = slices.AppendSeq(slices.AppendSeq(fields, maps.Keys(event.Only)), maps.Keys(event.Except))
	}
	if strings.Contains(r.ErrorField, formMark) {
		return fmt.Errorf("error_field is %q: write the name of a field, without a form", r.ErrorField)
	}
	slices.Sort(fields)
	for _, field := range fields {
		if err := validateForm(field); err != nil {
			return err
		}
	}
	return nil
}

// valuesOf returns the values of a field of only or except as texts. It returns false if there is none, or if one is
// neither a text nor a whole number.
func valuesOf(setting any) (values []string, ok bool) {
	list, ok := setting.([]any)
	if !ok {
		list = []any{setting}
	}
	for _, value := range list {
		switch value.(type) {
		case string, int, int64, uint64:
			values = append(values, fmt.Sprint(value))
		default:
			return nil, false
		}
	}
	return values, len(values) > 0
}

// validateKeys returns the first error in the lane and the fields of keys.
func (r *CallRule) validateKeys() error {
	if len(r.KeyFields) > 0 && len(r.Entry.KeyFields)+len(r.Exit.KeyFields) > 0 {
		return errors.New("set either key_field, or entry.key_field and exit.key_field")
	}
	entry, exit := r.keysOf(&r.Entry), r.keysOf(&r.Exit)
	switch lane := r.lane(); {
	case len(entry) != len(exit):
		return fmt.Errorf("the key of entry has %d fields, and that of exit has %d: name the same number of fields in both", len(entry), len(exit))
	case slices.Contains(entry, "") || slices.Contains(exit, ""):
		return errors.New("key_field has an empty name: set it to names of fields")
	case lane != LaneThread && lane != LaneCPU && lane != LaneKey:
		return fmt.Errorf("lane is %q: set it to %s, %s or %s", r.Lane, LaneThread, LaneCPU, LaneKey)
	case lane == LaneKey && len(entry) == 0:
		return fmt.Errorf("lane is %s: set key_field", LaneKey)
	case lane == LaneThread && len(entry) > 1:
		return fmt.Errorf("lane is %s and the key has %d fields: name one field, with the number of the thread", LaneThread, len(entry))
	case r.KeyIsThread && (lane != LaneCPU || len(entry) != 1):
		return fmt.Errorf("key_is_thread is set: set lane to %s, and name one key field, with the number of the thread", LaneCPU)
	case r.KeyIsThread && r.Entry.UnlessRunning:
		return errors.New("key_is_thread and entry.unless_running are set: leave out one of them")
	case r.Entry.UnlessRunning && len(entry) != 1:
		return errors.New("entry.unless_running is set: name one key field, with the number of the thread")
	case r.isOneEvent() && slices.Equal(entry, exit):
		return fmt.Errorf("entry and exit are both %q: set them to different events, or entry.key_field and exit.key_field to different fields", r.Entry.Event)
	}
	return nil
}

// keysOf returns the fields of the key in one of the rule's events.
func (r *CallRule) keysOf(event *RuleEvent) []string {
	if len(event.KeyFields) > 0 {
		return event.KeyFields
	}
	return r.KeyFields
}

// lane returns the owner of the stack of the calls.
func (r *CallRule) lane() Lane {
	switch {
	case r.Lane != "":
		return r.Lane
	case len(r.keysOf(&r.Entry)) > 0:
		return LaneKey
	default:
		return LaneThread
	}
}

// isOneEvent reports whether each event of the rule leaves a function and enters another.
func (r *CallRule) isOneEvent() bool { return r.Entry.Event == r.Exit.Event }

// namePart is a part of a function's name: a text, the value of a field, or the text for the *.
type namePart struct{ text, field string }

// parseName returns the parts of a name. matches is set if the rule's events have a *.
func parseName(name string, matches bool) ([]namePart, error) {
	var parts []namePart
	for rest := name; rest != ""; {
		text, after, isField := strings.Cut(rest, "{")
		if text != "" {
			parts = append(parts, namePart{text: text})
		}
		if !isField {
			break
		}
		field, after, closed := strings.Cut(after, "}")
		if !closed || field == "" {
			return nil, fmt.Errorf("name is %q: write a field of the event between { and }", name)
		}
		if field == anyText && !matches {
			return nil, fmt.Errorf("name is %q and entry has no *: name a field of the event between { and }", name)
		}
		parts = append(parts, namePart{field: field})
		rest = after
	}
	return parts, nil
}
