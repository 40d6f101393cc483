// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
	"github.com/callbraid/callbraid/internal/testkit/profiletest"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
)

func TestBadMessagesAreCountedByKind(t *testing.T) {
	good := numbered(t, rbkit.Released, 1, at(1, rbkit.GCStart))
	b, s := alone(t)
	s.Begin(origin.Identity{})
	for i, message := range []zmtp.Message{
		{good[:len(good)-1]},
		{append([]byte{0x84, 0x00, 0x07, 0x01, 0xa8}, "12:34:56\x09\x01\x02\x90"...)}, // a text for a time
		{[]byte{0x83, 0x00, 0x07, 0x01, 0xff, 0x02, 0x90}},                            // a time below 0
		{[]byte{0x82, 0x00, 0x07, 0x02, 0x90}},                                        // no time
		{append(good[:len(good):len(good)], 0)},
		{good, good},
		{},
	} {
		for range i + 1 {
			s.Receive(message)
		}
	}
	b.finish(s)
	bad := b.Points()
	for what, want := range map[string]int64{"truncated": 1, "wrong_type": 2, "wrong_value": 3, "missing": 4, "trailing": 5, "parts": 6 + 7} {
		assert.Equal(t, want, bad["bad_messages{what="+what+"}"], what)
	}
}

func TestABurstOfBadMessagesEndsWithAGoodOne(t *testing.T) {
	b, s := alone(t)
	now := recorded
	b.receiver.out.Now = func() time.Time { return now }
	s.Begin(origin.Identity{})
	lines := func() int { return b.Log.FilterMessageSnippet("is malformed").Len() }
	for range 3 {
		s.Receive(zmtp.Message{{0xc1}})
		now = now.Add(2 * logline.Pause)
	}
	assert.Equal(t, 1, lines(), "one burst")
	s.Receive(zmtp.Message{numbered(t, rbkit.Released, 1)})
	s.Receive(zmtp.Message{{0xc1}})
	assert.Equal(t, 2, lines(), "another one")
	b.finish(s)
}

func TestConnectionsThatFailAreCountedBySocket(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released, Mute: true})
	b := newBed(t, following(server), func(_ *bed, c *Config) { c.Timeout = 100 * time.Millisecond })
	b.Await("a request without an answer", func() bool { return b.Points()["connection_failures{socket=request}"] > 0 })
	assert.Zero(t, b.Points()["connection_failures{socket=publish}"])
	assert.EqualValues(t, 1, b.Points()["servers"])
	server.stop()
	b.Await("the loss", func() bool { return b.Points()["connection_failures{socket=publish}"] > 0 })
	b.Await("no server", func() bool { return b.Counter("servers") == 0 })
}

func TestTheRecordOfALostServerHasReasonAndLifetime(t *testing.T) {
	b, s := alone(t)
	now := recorded
	b.receiver.out.Now = func() time.Time { return now }
	s.Begin(origin.Identity{State: &released})
	now = now.Add(90 * time.Second)
	b.receiver.out.Disconnected(s.Disconnect(), recorded, errText("it \xff went"))
	b.receiver.out.Finish()
	gone := b.Records(eventGone)
	require.Len(t, gone, 1)
	assert.Equal(t, plog.SeverityNumberWarn, gone[0].SeverityNumber())
	assert.Equal(t, now, gone[0].Timestamp().AsTime())
	assert.Equal(t, now, gone[0].ObservedTimestamp().AsTime())
	assert.Equal(t, map[string]any{attributeLifetime: 90.0, attributeError: "it \uFFFD went"}, gone[0].Attributes().AsRaw())
	pid, _ := b.Logs.AllLogs()[0].ResourceLogs().At(0).Resource().Attributes().Get("process.pid")
	assert.EqualValues(t, released.PID, pid.Int())
}

// errText is an error of which this is the text.
type errText string

func (e errText) Error() string { return string(e) }

// A thread's ID is a number that attributes can have.
func TestAThreadWhoseIDIsTooLargeHasTheLargest(t *testing.T) {
	b, s := alone(t)
	s.Begin(origin.Identity{})
	sample := func(thread uint64) func(*rbkit.Collection) error {
		return func(c *rbkit.Collection) error {
			return c.Sample(1, []rbkit.Frame{{Method: []byte("m"), File: []byte("a.rb"), Line: 1, Thread: thread}})
		}
	}
	s.Receive(zmtp.Message{numbered(t, rbkit.Released, 0, sample(math.MaxUint64), sample(math.MaxUint64-1), sample(math.MaxInt64))})
	b.finish(s)
	require.Len(t, b.Profiles.AllProfiles(), 1)
	profiletest.CheckValid(t, b.Profiles.AllProfiles()[0])
	assert.Contains(t, profiletest.Fold(b.Profiles.AllProfiles()), "{thread.id=9223372036854775807} 3\n")
}
