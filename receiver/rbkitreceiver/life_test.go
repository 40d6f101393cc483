// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/records"
)

// orders returns the received commands without handshakes.
func (p *played) orders() []rbkit.Command {
	return slices.DeleteFunc(p.Commands(), func(c rbkit.Command) bool { return c == rbkit.Handshake })
}

// publishObject publishes a message of one object.
func (p *played) publishObject(id uint64, class string) {
	p.t.Helper()
	c := rbkit.NewCollection(p.State().Dialect)
	require.NoError(p.t, c.Created(1, id, []byte(class)))
	p.PublishEvents(time.Now(), c)
}

func profiling(_ *bed, c *Config) {
	c.MemoryProfile, c.CPUProfile, c.Clock = true, true, ClockWall
}

func TestWantedProfilesAreSwitchedOnAndOffAgain(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server), profiling)
	want := []rbkit.Command{rbkit.StartMemoryProfile, rbkit.UseWallTime, rbkit.StartCPUProfiling}
	b.Await("the state", func() bool { s := server.State(); return s.ObjectTraceEnabled && s.CPUProfiling })
	assert.Equal(t, want, server.orders())
	b.Shutdown()
	assert.Equal(t, append(want, rbkit.StopMemoryProfile, rbkit.StopCPUProfiling), server.orders())
	assert.False(t, server.State().ObjectTraceEnabled)
}

func TestProfilesOfOthersStayOn(t *testing.T) {
	hello := released
	hello.ObjectTraceEnabled, hello.CPUProfiling = true, true
	server := play(t, rbkitserver.Options{Hello: hello})
	b := newBed(t, following(server), profiling)
	server.awaitSubscriber()
	server.publishObject(20, "String")
	b.Await("an object", func() bool { return b.Counter("events") == 1 })
	b.Shutdown()
	assert.Empty(t, server.orders())
}

func TestTheLogNamesAServerWhoseStateDoesNotChange(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released, Deaf: true})
	b := newBed(t, following(server), profiling, func(_ *bed, c *Config) { c.StateInterval = 10 * time.Millisecond })
	b.Await("more commands", func() bool { return len(server.orders()) > 6 })
	b.AwaitLine("The server accepted commands, but its state has not changed")
	b.Shutdown()
	assert.Equal(t, 1, b.Log.FilterMessage("The server accepted commands, but its state has not changed").Len())
}

func TestCommandsAreSentAtTheirIntervals(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	newBed(t, following(server), func(_ *bed, c *Config) {
		c.TriggerGCInterval, c.ObjectSpaceSnapshotInterval = 100*time.Millisecond, 100*time.Millisecond
	})
	require.True(t, testkit.Happens(func() bool {
		orders := server.orders()
		return slices.Contains(orders, rbkit.TriggerGC) && slices.Contains(orders, rbkit.ObjectSpaceSnapshot)
	}))
}

func TestMessagesOfASilentServerAreReceived(t *testing.T) {
	c := openCapture(t, "documented-30s")
	server := play(t, rbkitserver.Options{Mute: true})
	b := newBed(t, following(server), profiling, func(_ *bed, c *Config) { c.Timeout = 100 * time.Millisecond })
	b.AwaitLine("Connected to the server")
	server.replay(c)
	b.Await("messages", func() bool { return b.Counter("messages") == 24 })
	b.Shutdown()
	assert.Equal(t, 1, b.Log.FilterMessageSnippet("doesn't answer requests").Len())
	assert.Positive(t, b.Counter("connection_failures"))
	assert.Equal(t, rbkit.Documented.String(), b.AwaitLine("Detected the dialect of the server").ContextMap()["dialect"])
	name, _ := b.state().Origin.Resource.Attributes().Get("service.name")
	assert.Equal(t, "unknown_service:ruby", name.Str())
}

func TestMessagesOfAServerWithoutRequestsAreReceived(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	address := server.config()
	address.Request = ""
	b := newBed(t, profiling, func(_ *bed, c *Config) { c.Servers = []ServerConfig{address} })
	server.awaitSubscriber()
	server.publishObject(20, "String")
	b.Await("an object", func() bool { return b.Counter("events") == 1 })
	b.Shutdown()
	assert.Empty(t, server.Commands())
}

func TestARestartedServerIsSwitchedOnAgainAndItsCountersStartAtZero(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server), profiling)
	server.awaitSubscriber()
	server.publishObject(20, "String")
	server.publishObject(40, "String")
	b.Await("objects", func() bool { return b.Counter("events") == 2 })
	again := released
	again.PID++
	server.restart(rbkitserver.Options{Hello: again})
	b.Await("the state", func() bool { s := server.State(); return s.ObjectTraceEnabled && s.CPUProfiling })
	server.awaitSubscriber()
	server.publishObject(20, "Array")
	b.Await("an object", func() bool { return b.Counter("events") == 3 })
	b.Shutdown()
	s := b.state()
	assert.Equal(t, int64(1), s.Events, "of the second life")
	pid, _ := s.Origin.Resource.Attributes().Get("process.pid")
	assert.EqualValues(t, again.PID, pid.Int())
	assert.EqualValues(t, 1, b.Counter("restarts"))
	assert.Zero(t, b.Counter("messages_lost"))
	assert.Len(t, b.Records(eventConnected), 2)
	assert.Len(t, b.Records(eventGone), 2)
	assert.Len(t, b.Records(eventRestarted), 1)
}

func TestNumbersThatFallAreARestartAndGapsAreLosses(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server))
	server.awaitSubscriber()
	send := func(counter uint64) {
		c := rbkit.NewCollection(rbkit.Released)
		require.NoError(t, c.Created(1, 20, nil))
		server.Publish(c.AppendTo(nil, 1, counter))
	}
	for _, counter := range []uint64{5, 6, 9, 0, 1} {
		send(counter)
	}
	b.Await("messages", func() bool { return b.Counter("messages") == 5 })
	b.Shutdown()
	assert.EqualValues(t, 2, b.Counter("messages_lost"), "7 and 8")
	assert.EqualValues(t, 1, b.Counter("restarts"))
	assert.Equal(t, int64(2), b.state().Messages)
}

func TestAMalformedMessageIsNoLostMessage(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server))
	server.awaitSubscriber()
	empty := rbkit.NewCollection(rbkit.Released)
	for counter := range uint64(3) {
		message := empty.AppendTo(nil, 1, counter)
		if counter == 1 {
			message[len(message)-1] = 0xc0 // nil in the place of the events
		}
		server.Publish(message)
	}
	b.Await("messages", func() bool { return b.Counter("messages") == 3 })
	b.Shutdown()
	assert.EqualValues(t, 1, b.Counter("bad_messages"))
	assert.Zero(t, b.Counter("messages_lost"))
}

func TestGarbageIsCountedByKindAndLoggedOnce(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server))
	server.awaitSubscriber()
	server.publishObject(20, "String")
	for i := range rbkitserver.GarbageKinds() {
		server.Publish(rbkitserver.Garbage(i))
	}
	server.publishObject(40, "String")
	b.Await("all of it", func() bool { return b.Counter("events") == 2 })
	b.Shutdown()
	assert.EqualValues(t, rbkitserver.GarbageKinds(), b.Counter("bad_messages"))
	assert.Equal(t, 1, b.Log.FilterMessageSnippet("is malformed").Len())
	assert.EqualValues(t, 2, b.state().Created[names.First])
}

func TestAMessageThatIsTooLongEndsTheConnectionOnly(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server), func(_ *bed, c *Config) { c.Limits.MaxMessageBytes = 64 << 10 })
	server.awaitSubscriber()
	server.Publish(make([]byte, 65<<10))
	b.Await("the loss", func() bool { return b.Counter("connection_failures") > 0 })
	b.Await("another connection", func() bool { return len(b.Records(eventConnected)) >= 2 })
	// The server may not have noticed yet which connection is the present one.
	b.Await("an object", func() bool {
		server.publishObject(20, "String")
		return b.Counter("events") > 0
	})
}

func TestShutdownWithoutStartAndTwice(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := unstartedBed(t, following(server))
	b.Shutdown()
	b.Shutdown()
	b = unstartedBed(t, following(server))
	require.NoError(t, b.Component().Start(context.Background(), componenttest.NewNopHost()))
	b.Shutdown()
	b.Shutdown()
}

func TestSignalsWithoutAPipelineAreNotMade(t *testing.T) {
	c := openCapture(t, "released-30s")
	server := play(t, rbkitserver.Options{Hello: rbkitserver.Hello(c)})
	b := newBed(t, following(server), func(b *bed, c *Config) {
		c.DumpReferences = true
		b.Next.Traces, b.Next.Logs, b.Next.Profiles, b.Next.Metrics = nil, nil, nil, nil
	})
	server.replay(c)
	b.Await("messages", func() bool { return b.Counter("messages") == 132 })
	b.Shutdown()
	assert.Zero(t, b.Counter("spans_dropped")+b.Counter("log_records_dropped")+b.Counter("samples_dropped")+b.Counter("metric_points_dropped"))
}

func TestATruncatedDumpIsIncomplete(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server))
	server.awaitSubscriber()
	c := rbkit.NewCollection(rbkit.Released)
	require.NoError(t, c.Dump(1, 1, 2, []rbkit.DumpObject{{ID: 20, Size: 40}}))
	server.PublishEvents(time.Now(), c)
	b.Await("the part", func() bool { return b.Counter("events") == 1 })
	server.stop()
	b.Await("the summary", func() bool { return len(b.Records(eventDump)) == 1 })
	assert.Equal(t, "Object space dump, incomplete: 1 of 2 objects, 40 bytes", b.Records(eventDump)[0].Body().Str())
	b.Await("it to be counted", func() bool { return b.Counter("dumps") == 1 })
	assert.Empty(t, b.state().Live.Objects, "an incomplete dump has no live objects")
}

func TestLogRecordsThatAreSwitchedOffAreNotDelivered(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server), func(_ *bed, c *Config) {
		c.DumpReferences = true
		c.Events.RbkitServerConnected.Enabled, c.Events.RbkitObject.Enabled = false, false
	})
	server.awaitSubscriber()
	server.publishNumbered(0, func(c *rbkit.Collection) error { return c.Dump(1, 1, 1, []rbkit.DumpObject{{ID: 1}}) })
	b.Await("the dump", func() bool { return len(b.Records(eventDump)) == 1 })
	b.Shutdown()
	assert.Empty(t, b.Records(eventConnected))
	assert.Empty(t, b.Records(records.EventObject))
	assert.Len(t, b.Records(eventGone), 1)
}

func TestProfilesThatOthersSwitchOnAfterARestartStayOn(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server), profiling)
	b.Await("the state", func() bool { s := server.State(); return s.ObjectTraceEnabled && s.CPUProfiling })
	again := released
	again.PID++
	again.ObjectTraceEnabled = true // another client was faster
	server.restart(rbkitserver.Options{Hello: again})
	b.Await("the state", func() bool { return server.State().CPUProfiling })
	b.Shutdown()
	assert.Equal(t, []rbkit.Command{rbkit.UseWallTime, rbkit.StartCPUProfiling, rbkit.StopCPUProfiling}, server.orders())
	assert.True(t, server.State().ObjectTraceEnabled)
}
