// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttng

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
)

// Event is an event as babeltrace2 reads it.
type Event struct {
	// Time is in nanoseconds since the Unix epoch.
	Time int64
	Name string
	// Process and Thread are their IDs.
	Process, Thread int64
}

// line matches babeltrace2's output for an event of a Session.
var line = regexp.MustCompile(`^\[(\d+)\.(\d{9})\] \S+ (\S+): \{[^}]*\}, \{ vpid = (\d+), vtid = (\d+), `)

// discarded matches babeltrace2's output for events that the tracer discarded: the increase of a stream's counter,
// modulo 2^64.
var discarded = regexp.MustCompile(`Tracer discarded (\d+) events? .* within stream "([^"]*)"`)

// Recorded returns the events in the traces below a directory, as babeltrace2 reads them, and the number of discarded
// events: the sum of the highest counters of all streams. The tracer's counters sometimes run backwards.
func Recorded(t testing.TB, directory string) (events []Event, lost int64) {
	t.Helper()
	text, warnings := lttngdata.Babeltrace(t, "--clock-gmt", "--clock-seconds", "--no-delta", directory)
	counters, highest := map[string]int64{}, map[string]int64{}
	for _, m := range discarded.FindAllStringSubmatch(warnings, -1) {
		grown, err := strconv.ParseUint(m[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		stream := m[2]
		counters[stream] += int64(grown) // two's complement, as the counter
		highest[stream] = max(highest[stream], counters[stream])
	}
	for _, n := range highest {
		lost += n
	}
	for printed := range strings.Lines(text) {
		m := line.FindStringSubmatch(printed)
		if m == nil {
			t.Fatalf("expected an event with vpid and vtid, got %q", printed)
		}
		events = append(events, Event{
			Time: integer(t, m[1])*1_000_000_000 + integer(t, m[2]), Name: m[3], Process: integer(t, m[4]), Thread: integer(t, m[5]),
		})
	}
	return events, lost
}

func integer(t testing.TB, digits string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
