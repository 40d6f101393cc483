// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
)

// fuzzed is an event with fields of all kinds that rules use.
const fuzzed = `/* CTF 1.8 */
typealias integer { size = 8; align = 8; } := u8;
trace { major = 1; minor = 8; byte_order = le; };
stream { id = 0; packet.context := struct { u8 cpu_id; }; event.context := struct { u8 _tid; }; };
event { name = syscall_entry_read; id = 0; stream_id = 0; fields := struct {
  integer { size = 64; align = 8; signed = true; } _ret; string _comm; u8 _dev;
  enum : u8 { RUNNING = 0, WAITING } _state; struct { u8 x; } s; u8 _list[3]; }; };
`

// FuzzRules reads an event with two rules of any settings. A setting is refused, or each end of calls either lacks a
// field or has its lane, its key and its name in bounds.
func FuzzRules(f *testing.F) {
	f.Add("syscall_entry_*", "syscall_exit_*", "", "", "", "", "", "*", "ret", true, []byte("\xff\xff\xff\xff\xff\xff\xff\xffls\x00\x01\x01\x02abc"))
	f.Add("syscall_entry_read", "syscall_entry_read", "on {comm}", "", "", "ret", "dev", "comm,state", "", false, []byte("\x02\x00\x00\x00\x00\x00\x00\x00ls\x00\x01\x00\x02abc"))
	f.Add("syscall_entry_read", "syscall_exit_read", "", "s.x", "thread", "tid", "tid", "list", "", false, []byte("\x02\x00\x00\x00\x00\x00\x00\x00\x00\x01\x09\x02abc"))
	f.Add("syscall_*_read", "syscall_*", "{*} {cpu_id}", "", "cpu", "cpu_id", "cpu_id", "", "comm", false, []byte("\x02\x00\x00\x00\x00\x00\x00\x00\x00\x01\x09\x02abc"))
	f.Fuzz(func(t *testing.T, entry, exit, name, nameField, lane, entryKeys, exitKeys, attributes, errorField string, outermost bool, content []byte) {
		split := func(s string) []string {
			if s == "" {
				return nil
			}
			return strings.Split(s, ",")
		}
		settings := []CallRule{{
			Entry: RuleEvent{Event: entry, KeyFields: split(entryKeys), Only: map[string]any{"state": []any{0, 1}}}, Exit: RuleEvent{Event: exit, KeyFields: split(exitKeys)},
			Name: name, NameField: nameField, Lane: Lane(lane), Outermost: outermost, Attributes: split(attributes), ErrorField: errorField,
		}, {Entry: RuleEvent{Event: "syscall_entry_*"}, Exit: RuleEvent{Event: "syscall_exit_*"}}}
		if ValidateCallRules(settings) != nil {
			return
		}
		rules := NewRules(settings)
		trace := ctf.NewTrace()
		require.NoError(t, trace.Append([]byte(fuzzed)))
		r := ctf.NewReader(trace)
		if r.Begin(append([]byte{3}, content...)) != nil {
			return
		}
		known := NewTexts()
		for r.Next() {
			e, packet := &r.Event, &r.Packet
			require.True(t, rules.Has(e.Class.Name))
			exitsEnded := false
			parts := NewPlan(e.Class, rules, true, Records{MaxBytes: 1 << 10}).Rules
			require.NotEmpty(t, parts)
			for i := range parts {
				p := &parts[i]
				require.False(t, exitsEnded && p.IsExit(), "an event ends calls before it begins others")
				exitsEnded = !p.IsExit()
				if p.Lack != nil {
					require.NotEmpty(t, p.Lack.Fields)
					continue
				}
				p.Selects(nil, e, packet)
				key, ok := p.Key(nil, e, packet)
				require.True(t, ok, "no field of this event is optional")
				if p.HasKey() && p.Lane == LaneThread {
					_, ok = p.Thread(e, packet)
					require.True(t, ok)
				}
				cpu, ok := p.CPU(packet)
				require.True(t, ok && cpu == 3)
				require.NotZero(t, p.KeyLane(key)&p.CPULane(cpu, key)&callevent.LaneKey)
				function, ok := p.AppendFunction(nil, e, packet)
				require.True(t, ok || p.IsExit())
				require.True(t, !ok || len(function) > 0)
				require.LessOrEqual(t, len(p.AppendAttributes(nil, e, packet, known)), callevent.MaxEventAttributes)
				p.Failure(e)
			}
		}
	})
}
