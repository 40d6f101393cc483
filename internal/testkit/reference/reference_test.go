// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The numbers of testdata/README.md were counted by another program.
func TestTheCapturesHaveTheNumbersOfTheirReadme(t *testing.T) {
	for _, test := range []struct {
		capture                           string
		events, finished, unwound, orphan int
		breaks                            []uint32
		truncated                         map[string]int
	}{
		{"shop", 9_628, 4_793, 63, 0, nil, map[string]int{}},
		{"suspend", 47_870, 23_844, -1, 10, []uint32{13_322, 28_180}, map[string]int{"suspended": 10}},
		{"startsuspended", 29_310, 14_605, -1, 0, nil, map[string]int{}},
		{"maven", 887_366, 442_769, 1_840, 0, nil, map[string]int{"ended": 1}},
	} {
		t.Run(test.capture, func(t *testing.T) {
			run, err := Open("../../../testdata/bytefrog/" + test.capture + ".zip")
			require.NoError(t, err)
			assert.Len(t, run.Events, test.events)
			assert.Equal(t, test.breaks, run.Breaks)
			for i, e := range run.Events {
				require.Equal(t, i, int(e.Sequence), "sequence numbers are complete")
			}
			result := Spans(run, Rules{End: "ended"})
			assert.Equal(t, test.orphan, result.Orphans)
			assert.Equal(t, test.truncated, result.Truncated)
			finished, unwound := 0, 0
			for _, s := range result.Spans {
				if s.Truncated == "" {
					finished++
				}
				if s.Unwound {
					unwound++
				}
				assert.Less(t, s.Start, s.End)
			}
			assert.Equal(t, test.finished, finished)
			if test.unwound >= 0 {
				assert.Equal(t, test.unwound, unwound)
			}
		})
	}
}

// The numbers are the first entries under the new names. Another program counted them.
func TestWhereThreadsOfTheShopAreRenamed(t *testing.T) {
	run, err := Open("../../../testdata/bytefrog/shop.zip")
	require.NoError(t, err)
	renamed := map[string]uint32{}
	for _, e := range run.Events {
		name := run.ThreadName(e)
		if _, seen := renamed[name]; !seen && e.Type == methodEntry && strings.HasSuffix(name, "draining") {
			renamed[name] = e.Sequence
		}
	}
	assert.Equal(t, map[string]uint32{"worker-0-draining": 9622, "worker-1-draining": 8322, "worker-2-draining": 9292}, renamed)
}

// The rules, one by one. A script has one event in each line: what, function,
// exception; or a break. All of it happens on thread 0 at time 0, so an event's
// time is its number in nanoseconds. A line of the result is a span: function,
// first and last nanosecond, parent, and marks such as "cut by".
func TestTheRules(t *testing.T) {
	for _, test := range []struct {
		name         string
		limit        int
		script, want string
	}{
		{"a call inside a call", 0, "enter a, enter b, exit b, exit a", "a 0-3, b 1-2 in 0"},
		{"an exception that is caught", 0, "enter a, throw a E, exit a", "a 0-2 E@1"},
		{"an exception that leaves two calls", 0, "enter a, enter b, throw b E, unwind b E, unwind a E",
			"a 0-4 E@4 left by E, b 1-3 in 0 E@2 left by E"},
		{"another exception leaves than was thrown", 0, "enter a, throw a E, unwind a F", "a 0-2 E@1 F@2 left by F"},
		{"an exit that is deeper in the stack", 0, "enter a, enter b, enter c, exit a", "a 0-3, b 1-3 in 0 cut by mismatch, c 2-3 in 1 cut by mismatch"},
		{"recursion closes the nearest", 0, "enter a, enter a, exit a", "a 0-3 cut by ended, a 1-2 in 0"},
		{"orphans are no spans but take time", 0, "exit x, throw x E, enter a, exit a", "a 2-3"},
		{"a break", 0, "enter a, enter b, exit b, break, exit a, enter c, exit c", "a 0-3 cut by suspended, b 1-2 in 0, c 4-5"},
		{"the end", 0, "enter a, enter b", "a 0-2 cut by ended, b 1-2 in 0 cut by ended"},
		{"a full trace goes on in another", 2, "enter a, enter b, exit b, enter c, enter d, exit d, exit c, enter e, exit e, exit a",
			"a 0-9, b 1-2 in 0, c 3-6 in 0 linked from trace 3, d 4-5 in 3 trace 3, e 7-8 in 0 linked from trace 7"},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := &Run{Threads: map[uint16][]ThreadName{}}
			for _, line := range strings.Split(test.script, ", ") {
				words := append(strings.Fields(line), "", "")
				n := uint32(len(run.Events))
				if words[0] == "break" {
					run.Breaks = append(run.Breaks, n)
					continue
				}
				kinds := map[string]byte{"enter": methodEntry, "exit": methodExit, "throw": exception, "unwind": exceptionBubble}
				run.Events = append(run.Events, Event{Type: kinds[words[0]], Sequence: n, Method: words[1], Exception: words[2]})
			}
			result := Spans(run, Rules{End: "ended", MaxSpansPerTrace: test.limit})
			var got []string
			for n := range int64(len(run.Events)) {
				if s := result.Spans[n]; s != nil {
					got = append(got, describe(s))
				}
			}
			assert.Equal(t, test.want, strings.Join(got, ", "))
		})
	}
}

func describe(s *Span) string {
	text := fmt.Sprintf("%s %d-%d", s.Function, s.Start, s.End)
	if s.Parent >= 0 {
		text += fmt.Sprintf(" in %d", s.Parent)
	}
	for _, x := range s.Exceptions {
		text += fmt.Sprintf(" %s@%d", x.Type, x.Time)
	}
	if s.Unwound {
		text += " left by " + s.ErrorType
	}
	if s.Truncated != "" {
		text += " cut by " + s.Truncated
	}
	if s.Linked {
		text += " linked from"
	}
	if s.Trace != 0 && s.Trace != s.Sequence || s.Linked {
		text += fmt.Sprintf(" trace %d", s.Trace)
	}
	return text
}

func TestNames(t *testing.T) {
	for signature, want := range map[string][2]string{
		"demo/Shop$Order.process;0;()V":   {"demo.Shop$Order.process", "Shop$Order.process"},
		"Shop.<init>;1;(Ldemo/Order.X;)V": {"Shop.<init>", "Shop.<init>"},
	} {
		assert.Equal(t, want, [2]string{Qualified(signature), Display(signature)})
	}
}
