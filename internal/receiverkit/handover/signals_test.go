// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
)

// The tests queue numbers. Each becomes an item of the signal that has the number as its text or time.

func recordsOf(numbers []int) plog.Logs {
	logs := plog.NewLogs()
	records := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for _, n := range numbers {
		records.AppendEmpty().Body().SetStr(string(rune('0' + n)))
	}
	return logs
}

func spansOf(numbers []int) ptrace.Traces {
	traces := ptrace.NewTraces()
	spans := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for _, n := range numbers {
		spans.AppendEmpty().SetStartTimestamp(pcommon.Timestamp(n))
	}
	return traces
}

func profilesOf(numbers []int) pprofile.Profiles {
	profiles := pprofile.NewProfiles()
	all := profiles.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles()
	for _, n := range numbers {
		all.AppendEmpty().SetTime(pcommon.Timestamp(n))
	}
	return profiles
}

// numberQueue is a Queue of any signal.
type numberQueue interface {
	Enqueue(int) bool
	Bytes() int
	Close()
}

func settingsOf[D any](b *bed, make func([]int) D) QueueSettings[int, D] {
	return QueueSettings[int, D]{
		Settings: b.settings, MaxItems: 3, MaxBytes: 1000, Overflow: OverflowDrop, MaxAtOnce: 10,
		Size: func(*int) (items, bytes int) { return 1, 1 }, Make: make,
		Dropped: func(items int, reason string) { b.add(items, reason) },
	}
}

// signals are the signals of queues, each with its constructor, the name of its items in the log, and the counter of
// accepted items.
var signals = map[string]struct {
	queue           func(*bed, *pipeline) numberQueue
	items, accepted string
}{
	"logs": {
		func(b *bed, next *pipeline) numberQueue { return NewLogs(next, settingsOf(b, recordsOf)) },
		"log records", "accepted_log_records",
	},
	"traces": {
		func(b *bed, next *pipeline) numberQueue { return NewSpans(next, settingsOf(b, spansOf)) },
		"spans", "accepted_spans",
	},
	"profiles": {
		func(b *bed, next *pipeline) numberQueue { return NewProfiles(next, settingsOf(b, profilesOf)) },
		"profile samples", "accepted_profile_samples",
	},
}

func TestEverySignalIsTriedAgainCopiedBoundedAndObserved(t *testing.T) {
	for name, signal := range signals {
		t.Run(name, func(t *testing.T) {
			// The pipeline changes the data that it refuses, so only a copy arrives unchanged.
			b, next := newBed(t), &pipeline{refuse: errRefused, spoils: true}
			queue := signal.queue(b, next)
			queue.Enqueue(1)
			b.await("tries", func() bool { return next.tried() > 2 })
			for n := range 5 {
				queue.Enqueue(2 + n)
			}
			assert.Equal(t, map[string]int{DroppedQueueFull: 2}, b.dropped())
			assert.Equal(t, 1, b.lines("The queue of "+signal.items+" is full"))
			next.refuseWith(nil)
			b.await("the queue to be empty", func() bool { return queue.Bytes() == 0 })
			assert.Equal(t, [][]string{{"1"}, {"2", "3", "4"}}, next.names())

			next.refuseWith(consumererror.NewPermanent(errNever))
			b.pass(logline.Pause)
			queue.Enqueue(9)
			b.await("the line about the drop", func() bool { return b.lines("The pipeline refuses "+signal.items+" with a permanent error") == 1 })
			assert.Equal(t, 1, b.count(DroppedPermanent))

			next.refuseWith(errRefused)
			queue.Enqueue(9)
			b.over()
			queue.Close()
			assert.Equal(t, 1, b.count(DroppedShutdown))
			assert.Equal(t, 1, b.lines("The time of the shutdown is over: the receiver drops "+signal.items))
			assert.EqualValues(t, 4, b.observed(signal.accepted))
		})
	}
}
