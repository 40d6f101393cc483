// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func named(event string, keys ...string) RuleEvent { return RuleEvent{Event: event, KeyFields: keys} }

func TestAWrongRuleIsAnErrorWithItsRemedy(t *testing.T) {
	for want, rule := range map[string]CallRule{
		"set entry and exit to full names of events":                           {Entry: named("a"), Name: "n"},
		"entry and exit can have one * each":                                   {Entry: named("a*b*"), Exit: named("c")},
		"exit has a * and entry has none":                                      {Entry: named("a"), Exit: named("c*"), Name: "n"},
		"set either name, or name_field to a field of a":                       {Entry: named("a"), Exit: named("c")},
		`name is "{x} {y": write a field of the event between { and }`:         {Entry: named("a"), Exit: named("c"), Name: "{x} {y"},
		`name is "{x} {*}" and entry has no *`:                                 {Entry: named("a"), Exit: named("c"), Name: "{x} {*}"},
		"the key of entry has 1 fields, and that of exit has 2":                {Entry: named("a", "k"), Exit: named("c", "k", "l"), Name: "n"},
		"the key of entry has 0 fields, and that of exit has 1":                {Entry: named("a"), Exit: named("c", "k"), Name: "n"},
		"key_field has an empty name":                                          {Entry: named("a", ""), Exit: named("c", "k"), Name: "n"},
		`lane is "core": set it to thread, cpu or key`:                         {Entry: named("a"), Exit: named("c"), Name: "n", Lane: "core"},
		"lane is key: set key_field":                                           {Entry: named("a"), Exit: named("c"), Name: "n", Lane: LaneKey},
		"lane is thread and the key has 2 fields":                              {Entry: named("a"), Exit: named("c"), Name: "n", Lane: LaneThread, KeyFields: []string{"k", "l"}},
		`entry and exit are both "a": set them to different events`:            {Entry: named("a", "k"), Exit: named("a", "k"), Name: "n"},
		"set name to a text without fields":                                    {Entry: named("a", "k"), Exit: named("a", "l"), NameField: "f", Lane: LaneThread},
		"key_is_thread is set: set lane to cpu, and name one key field":        {Entry: named("a"), Exit: named("c"), Name: "n", Lane: LaneCPU, KeyIsThread: true},
		"key_is_thread is set: set lane to cpu":                                {Entry: named("a", "k"), Exit: named("c", "k"), Name: "n", KeyIsThread: true},
		"leave out one of them":                                                {Entry: RuleEvent{Event: "a", KeyFields: []string{"k"}, UnlessRunning: true}, Exit: named("c", "k"), Name: "n", Lane: LaneCPU, KeyIsThread: true},
		"exit.unless_running is set":                                           {Entry: named("a"), Exit: RuleEvent{Event: "c", UnlessRunning: true}, Name: "n"},
		"entry.unless_running is set: name one key field":                      {Entry: RuleEvent{Event: "a", UnlessRunning: true}, Exit: named("c"), Name: "n"},
		"only and except of a: set field f to a text or a whole number":        {Entry: RuleEvent{Event: "a", Only: map[string]any{"f": 1.5}}, Exit: named("c"), Name: "n"},
		"set field f to a text or a whole number, or to a list of them":        {Entry: RuleEvent{Event: "a", Except: map[string]any{"f": []any{}}}, Exit: named("c"), Name: "n"},
		"only and except of b: set field f to a text or a whole number":        {Entry: RuleEvent{Event: "b", Only: map[string]any{"f": []any{1, 1.5}}}, Exit: named("c"), Name: "n"},
		`field is "dev:devcie": write its name, or its name and :device`:       {Entry: named("a"), Exit: named("c"), Name: "disk {dev:devcie}"},
		`field is "a:b:device"`:                                                {Entry: named("a"), Exit: named("c"), Name: "n", Attributes: []string{"a:b:device"}},
		`field is ":device"`:                                                   {Entry: named("a", ":device"), Exit: named("c", "k"), Name: "n"},
		`field is "x:"`:                                                        {Entry: RuleEvent{Event: "a", Only: map[string]any{"x:": 1}}, Exit: named("c"), Name: "n"},
		`error_field is "ret:device"`:                                          {Entry: named("a"), Exit: named("c"), Name: "n", ErrorField: "ret:device"},
		"attributes has an empty name: set it to names of fields, or to * for": {Entry: named("a"), Exit: named("c"), Name: "n", Attributes: []string{""}},
	} {
		err := ValidateCallRules([]CallRule{{Entry: named("x"), Exit: named("y"), Name: "fine"}, rule})
		require.Error(t, err, want)
		assert.Contains(t, err.Error(), "call_rules[1]: ")
		assert.Contains(t, err.Error(), want)
	}
}

func TestOneAsteriskStandsForAnyText(t *testing.T) {
	for _, c := range []struct {
		pattern, name, text string
		ok                  bool
	}{
		{"syscall_entry_*", "syscall_entry_read", "read", true},
		{"syscall_entry_*", "syscall_entry_", "", true},
		{"syscall_entry_*", "compat_syscall_entry_read", "", false},
		{"x86_*_entry", "x86_timer_entry", "timer", true},
		{"x86_*_entry", "x86_entry", "", false},
		{"*", "anything", "anything", true},
		{"exact", "exact", "", true},
		{"exact", "exactly", "", false},
	} {
		text, ok := (&RuleEvent{Event: c.pattern}).match(c.name)
		assert.Equal(t, c.ok, ok, "%s %s", c.pattern, c.name)
		if ok {
			assert.Equal(t, c.text, text, "%s %s", c.pattern, c.name)
		}
	}
}

func TestErrorNumbersHaveTheirNames(t *testing.T) {
	for n, want := range map[int]string{1: "EPERM", 2: "ENOENT", 11: "EAGAIN", 35: "EDEADLK", 41: "", 110: "ETIMEDOUT", 133: "EHWPOISON", 134: "", 512: "ERESTARTSYS", 516: "ERESTART_RESTARTBLOCK", 517: "", 0: "", 4095: ""} {
		assert.Equal(t, want, errnoName(n), "%d", n)
	}
}
