// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
	"github.com/callbraid/callbraid/internal/testkit/profiletest"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/process"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/profile"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/records"
)

func TestOldDataIsDeliveredWhileNoMessagesArrive(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server), func(_ *bed, c *Config) { c.ProfileInterval = 10 * time.Millisecond })
	server.awaitSubscriber()
	server.publishNumbered(0, func(c *rbkit.Collection) error { return c.Sample(1, []rbkit.Frame{{Method: []byte("m")}}) })
	b.Await("the profile", func() bool { return b.Profiles.SampleCount() == 1 })
	assert.EqualValues(t, 1, b.Counter("messages"), "there was no other")
}

func TestTheLastMetricsOfTooManyProcessesAreDroppedAndCounted(t *testing.T) {
	b := unstartedBed(t, ofOneServer, rarely)
	env := b.open()
	last := someState()
	const most = 64
	for range most {
		env.metrics.Ended(someState())
	}
	assert.Zero(t, b.Counter("metric_points_dropped"))
	env.metrics.Ended(last)
	assert.EqualValues(t, numPoints(&last), b.Counter("metric_points_dropped"))
	env.Finish()
	require.Len(t, b.eventsOf(), 1)
	assert.Len(t, b.eventsOf()[0], most)
}

func TestAProcessThatConnectsAgainAfterARefusalHasOneValue(t *testing.T) {
	b := unstartedBed(t, ofOneServer, rarely)
	env := b.open()
	refused := someState()
	now := refused
	refused.Ended = true
	now.Events++
	env.metrics.Ended(refused)
	env.metrics.Ended(now)
	env.Finish()
	assert.Equal(t, [][]int64{{now.Events}}, b.eventsOf())
}

// Each signal has its own bounds, and drops data beyond them.
func TestQueuesHaveTheBoundsThatAreSet(t *testing.T) {
	logs := func(n, bytes int) records.Parcel {
		return records.Parcel{Logs: plog.NewLogs(), Records: n, Bytes: bytes}
	}
	samples := func(n, bytes int) profile.Parcel {
		return profile.Parcel{Profiles: pprofile.NewProfiles(), Samples: n, Bytes: bytes}
	}
	const most = 5
	for name, c := range map[string]struct {
		set func(*LimitsConfig)
		// add adds one, of most that may wait, but of spans.
		add     func(*outputs) bool
		dropped string
	}{
		"log records":      {func(l *LimitsConfig) { l.MaxQueuedLogs = most }, func(e *outputs) bool { return e.logs.Enqueue(logs(1, 1)) }, "log_records_dropped"},
		"bytes of logs":    {func(l *LimitsConfig) { l.MaxQueuedLogBytes = mib }, func(e *outputs) bool { return e.logs.Enqueue(logs(1, mib/most)) }, "log_records_dropped"},
		"samples":          {func(l *LimitsConfig) { l.MaxQueuedSamples = most }, func(e *outputs) bool { return e.profiles.Enqueue(samples(1, 1)) }, "samples_dropped"},
		"bytes of samples": {func(l *LimitsConfig) { l.MaxQueuedSampleBytes = mib }, func(e *outputs) bool { return e.profiles.Enqueue(samples(1, mib/most)) }, "samples_dropped"},
		"spans":            {func(l *LimitsConfig) { l.MaxQueuedSpans = most * spansOfCycle }, addSpans, "spans_dropped"},
		"bytes of spans":   {func(l *LimitsConfig) { l.MaxQueuedSpanBytes = mib }, addSpans, "spans_dropped"},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := alone(t, func(b *bed, c2 *Config) {
				c.set(&c2.Limits)
				for _, pipeline := range []*receivertestbed.Gate{&b.Traces.Gate, &b.Logs.Gate, &b.Profiles.Gate} {
					pipeline.RefuseWith(receivertestbed.ErrRefused)
				}
			})
			env := b.receiver.out
			taken, beyond := 0, most+1 // one is on its way to the pipeline
			if c.dropped == "spans_dropped" {
				beyond = mib/bytesOfCycle + maxCyclesAtOnce
			}
			for c.add(env) {
				taken++
				require.LessOrEqual(t, taken, beyond)
			}
			assert.GreaterOrEqual(t, taken, most)
			assert.Positive(t, b.Counter(c.dropped))
			env.Expire()
			env.Finish()
		})
	}
}

// A snapshot has as many bytes as half of the queue.
func TestASnapshotEndsWhereItHasTooManyBytes(t *testing.T) {
	var files []rbkit.FileAllocations
	for i := range 200 {
		f := rbkit.FileAllocations{File: []byte(strconv.Itoa(i) + strings.Repeat("f", 1000))}
		for line := range uint64(20) {
			f.Allocations = append(f.Allocations, rbkit.PlaceAllocations{Line: line, Class: []byte("A"), Size: 4, Count: 1})
		}
		files = append(files, f)
	}
	message := numbered(t, rbkit.Documented, 0, func(c *rbkit.Collection) error { return c.Snapshot(1, nil, files) })
	b, s := alone(t, func(_ *bed, c *Config) { c.Limits.MaxQueuedSampleBytes = mib })
	s.Begin(origin.Identity{})
	s.Receive(zmtp.Message{message})
	s.End()
	b.receiver.out.Finish()
	require.Len(t, b.Profiles.AllProfiles(), 1)
	p := b.Profiles.AllProfiles()[0]
	profiletest.CheckValid(t, p)
	size := (&pprofile.ProtoMarshaler{}).ProfilesSize(p)
	assert.Less(t, size, mib)
	assert.Greater(t, size, mib/32)
	assert.Positive(t, b.Counter("samples_dropped"))
}

func TestAProfileOfSamplesEndsWhereItHasTooManyBytes(t *testing.T) {
	b, s := alone(t)
	s.Begin(origin.Identity{})
	const stacks = 8000
	c := rbkit.NewCollection(rbkit.Released)
	for i := range stacks {
		require.NoError(t, c.Sample(1, []rbkit.Frame{{Method: []byte(strconv.Itoa(i) + strings.Repeat("m", 1000))}}))
	}
	s.Receive(zmtp.Message{c.AppendTo(nil, 1, 0)})
	s.End()
	b.receiver.out.Finish()
	samples := 0
	require.Greater(t, len(b.Profiles.AllProfiles()), 1)
	for _, p := range b.Profiles.AllProfiles() {
		profiletest.CheckValid(t, p)
		assert.Less(t, (&pprofile.ProtoMarshaler{}).ProfilesSize(p), 4*mib)
		samples += p.SampleCount()
	}
	assert.Equal(t, stacks, samples, "none is lost")
}

func addSpans(e *outputs) bool {
	return e.spans.Enqueue(cycleParcel{cycle: process.Cycle{Number: 1, Start: 1, Marked: 2, End: 3}, origin: originOf(e.config, &e.config.Servers[0], "", origin.Identity{}, recorded, 1)})
}

func TestConnectionsHaveTheConfiguredOptions(t *testing.T) {
	c := createDefaultConfig()
	c.Timeout, c.Heartbeat, c.Limits.MaxMessageBytes = 3*time.Second, 7*time.Second, 1<<20
	want := zmtp.Options{Timeout: 3 * time.Second, Heartbeat: 7 * time.Second, Limits: zmtp.Limits{Message: 1 << 20}}
	assert.Equal(t, want, connectionOptions(c, &ServerConfig{}))
	want.Security = zmtp.Plain{Username: "reader", Password: "secret"}
	assert.Equal(t, want, connectionOptions(c, &ServerConfig{Username: "reader", Password: "secret"}))
}
