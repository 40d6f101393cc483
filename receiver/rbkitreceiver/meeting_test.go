// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/heap"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
)

// hesitant returns a server that answers no handshake before answer is called.
func hesitant(hello rbkit.HandshakeReply) (options rbkitserver.Options, answer func()) {
	until := make(chan struct{})
	return rbkitserver.Options{Hello: hello, Commanded: func(c rbkit.Command) {
		if c == rbkit.Handshake {
			<-until
		}
	}}, sync.OnceFunc(func() { close(until) })
}

// patiently is an option: no request runs out of time.
func patiently(_ *bed, c *Config) { c.Timeout = 10 * time.Minute }

// publishLarge publishes messages of a MiB, each of one object, and waits until the network has
// accepted them.
func (p *played) publishLarge(messages int) {
	p.t.Helper()
	class := make([]byte, mib)
	for range messages {
		p.publishObject(20, string(class))
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(p.t, p.Drain(ctx), "it is not read")
	require.Zero(p.t, p.Dropped())
}

// publishNumbered publishes a message with the events of a function, under a number.
func (p *played) publishNumbered(number uint64, write func(*rbkit.Collection) error) {
	p.t.Helper()
	c := rbkit.NewCollection(p.State().Dialect)
	require.NoError(p.t, write(c))
	p.Publish(c.AppendTo(nil, 1, number))
}

// pid returns the process ID in the resource of the first server.
func (b *bed) pid() int64 {
	b.T.Helper()
	v, _ := b.state().Origin.Resource.Attributes().Get("process.pid")
	return v.Int()
}

func TestMessagesDuringAnIdentificationBelongToTheIdentifiedServer(t *testing.T) {
	// More than sockets and publishers keep.
	const messages = 24
	options, answer := hesitant(released)
	server := play(t, options)
	t.Cleanup(answer)
	b := newBed(t, following(server), patiently)
	server.awaitSubscriber()
	server.publishLarge(messages)
	assert.Zero(t, b.Counter("messages"), "the sender is unknown")
	answer()
	b.Await("messages", func() bool { return b.Counter("messages") == messages })
	b.Shutdown()
	assert.EqualValues(t, released.PID, b.pid())
	assert.Zero(t, b.Counter("messages_lost"))
	assert.Len(t, b.Records(eventConnected), 1)
}

func TestHeldMessagesBeyondTheLimitEndAnIdentification(t *testing.T) {
	options, answer := hesitant(released)
	server := play(t, options)
	t.Cleanup(answer)
	b := newBed(t, following(server), patiently, func(_ *bed, c *Config) { c.Limits.MaxMessageBytes = 2 * mib })
	server.awaitSubscriber()
	server.publishLarge(4)
	b.Await("messages", func() bool { return b.Counter("messages") == 4 })
	assert.Zero(t, b.pid(), "the server has not identified itself")
	answer()
	b.AwaitLine("Connected to the server")
	assert.EqualValues(t, 4, b.state().Messages)
}

func TestMessagesOfAnotherLifeWaitForItsIdentification(t *testing.T) {
	var mu sync.Mutex
	asked := 0
	ask := make(chan struct{})
	server := play(t, rbkitserver.Options{Hello: released, Commanded: func(rbkit.Command) {
		mu.Lock()
		asked++
		second := asked == 3 // the first two are when it is connected
		mu.Unlock()
		if second {
			<-ask
		}
	}})
	answer := sync.OnceFunc(func() { close(ask) })
	t.Cleanup(answer)
	b := newBed(t, following(server), patiently)
	server.awaitSubscriber()
	one := func(c *rbkit.Collection) error { return c.Created(1, 20, []byte("A")) }
	server.publishNumbered(7, one)
	b.Await("the first life", func() bool { return b.Counter("messages") == 1 })
	b.Await("its state", func() bool { mu.Lock(); defer mu.Unlock(); return asked == 2 })
	for _, number := range []uint64{0, 1, 3} {
		server.publishNumbered(number, one)
	}
	b.Await("it to be asked again", func() bool { mu.Lock(); defer mu.Unlock(); return asked == 3 })
	assert.EqualValues(t, 1, b.Counter("messages"))
	answer()
	b.Await("the second life", func() bool { return b.Counter("messages") == 4 })
	s := b.state()
	assert.EqualValues(t, 3, s.Messages)
	assert.EqualValues(t, 1, s.Lost)
	assert.EqualValues(t, 1, b.Counter("restarts"))
	assert.EqualValues(t, released.PID, b.pid())
}

func TestMessagesBeforeTheEndOfAConnectionAreNotLost(t *testing.T) {
	options, answer := hesitant(released)
	server := play(t, options)
	t.Cleanup(answer)
	b := newBed(t, following(server), patiently)
	server.awaitSubscriber()
	server.publishLarge(2)
	go server.stop() // it answers nothing, so its end waits for ours
	b.Await("messages", func() bool { return b.Counter("messages") == 2 })
	answer()
	b.Shutdown()
	assert.Len(t, b.Records(eventConnected), 1)
	assert.Len(t, b.Records(eventGone), 1)
}

func TestMessagesOfAnotherLifeBeforeTheEndOfAConnectionAreNotLost(t *testing.T) {
	// The end of the connection and the next question come in any order.
	const servers = 6
	orders := make(chan rbkit.Command)
	ended := make(chan struct{})
	var all []*played
	for range servers {
		all = append(all, play(t, rbkitserver.Options{Hello: released, Commanded: func(c rbkit.Command) {
			if c == rbkit.TriggerGC {
				orders <- c
				<-ended
			}
		}}))
	}
	t.Cleanup(sync.OnceFunc(func() { close(ended) }))
	b := newBed(t, following(all...), patiently, func(_ *bed, c *Config) { c.TriggerGCInterval = 100 * time.Millisecond })
	one := func(c *rbkit.Collection) error { return c.Created(1, 20, []byte("A")) }
	for _, s := range all {
		s.awaitSubscriber()
		s.publishNumbered(7, one)
	}
	b.Await("the first lives", func() bool { return b.Counter("messages") == servers })
	for range servers {
		<-orders // which is under way from now on, so nothing is asked
	}
	for _, s := range all {
		s.publishNumbered(0, one)
	}
	b.Await("waiting messages of all servers", func() bool {
		for _, s := range b.receiver.servers {
			if s.Lives.Status().Waiting == 0 {
				return false
			}
		}
		return true
	})
	b.Shutdown()
	assert.EqualValues(t, 2*servers, b.Counter("messages"))
	assert.EqualValues(t, servers, b.Counter("restarts"))
}

// A container's process has the same ID in every life.
func TestStatisticsThatFallAreOfAnotherLife(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server), func(_ *bed, c *Config) { c.MemoryProfile = true })
	b.Await("it to be switched on", func() bool { return server.State().ObjectTraceEnabled })
	server.awaitSubscriber()
	statistics := func(count, allocated uint64) func(c *rbkit.Collection) error {
		return func(c *rbkit.Collection) error {
			if err := c.Created(1, 20, []byte("A")); err != nil {
				return err
			}
			if err := c.Stats(1, []rbkit.Stat{{Name: "count", Value: count}, {Name: "total_allocated_objects", Value: allocated}, {Name: "heap_live_slots", Value: 1000 - count}}); err != nil {
				return err
			}
			return c.Created(1, 40, []byte("B"))
		}
	}
	server.publishNumbered(0, statistics(10, 1000))
	server.publishNumbered(1, statistics(11, 1000))
	b.Await("the first life", func() bool { return b.Counter("messages") == 2 })
	assert.Zero(t, b.Counter("restarts"))
	hello := released
	hello.ObjectTraceEnabled = true // another client wants it
	server.restart(rbkitserver.Options{Hello: hello})
	server.awaitSubscriber()
	server.publishNumbered(5, statistics(12, 900))
	server.publishNumbered(6, statistics(13, 901))
	b.Await("the second life", func() bool { return b.Counter("messages") == 4 })
	b.Shutdown()
	s := b.state()
	assert.EqualValues(t, 1, b.Counter("restarts"))
	assert.EqualValues(t, 1, s.Messages, "that in which it was seen is of the first")
	assert.EqualValues(t, 5, s.Events, "from there on")
	assert.Equal(t, heap.Counts{0, 0, 0, 2, 1}, s.Created)
	assert.EqualValues(t, released.PID, b.pid())
	assert.Empty(t, server.orders(), "profiles of other clients stay on")
}

// refusing is an option: nothing can be asked before the test allows it.
func refusing(allowed *atomic.Bool, tries *atomic.Int32) option {
	return func(b *bed, c *Config) {
		c.MemoryProfile, c.StateInterval = true, time.Hour
		request := c.Servers[0].Request
		b.prepare = func(r *rbkitReceiver) {
			r.dial = func(ctx context.Context, address string) (net.Conn, error) {
				if address == request && !allowed.Load() {
					tries.Add(1)
					return nil, syscall.ECONNREFUSED
				}
				return dialTCP(ctx, address)
			}
		}
	}
}

func TestASocketThatOpensALittleLaterIsAsked(t *testing.T) {
	var allowed atomic.Bool
	var tries atomic.Int32
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server), patiently, refusing(&allowed, &tries))
	server.awaitSubscriber()
	server.publishObject(20, "A")
	b.Await("tries", func() bool { return tries.Load() > 2 })
	allowed.Store(true)
	b.Await("the object", func() bool { return b.Counter("messages") == 1 })
	assert.EqualValues(t, released.PID, b.pid())
	b.Await("the state", func() bool { return server.State().ObjectTraceEnabled })
}

func TestProfilesAreSwitchedOnWhenAServerBeginsToAnswer(t *testing.T) {
	var allowed atomic.Bool
	var tries atomic.Int32
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server), refusing(&allowed, &tries), func(_ *bed, c *Config) { c.Timeout = 100 * time.Millisecond })
	b.AwaitLine("Connected to the server")
	assert.Zero(t, b.pid(), "the server has not identified itself in time")
	before := tries.Load()
	b.Await("tries", func() bool { return tries.Load() > before+2 })
	allowed.Store(true)
	b.Await("the state", func() bool { return server.State().ObjectTraceEnabled })
	b.AwaitLine("The server answers requests again")
}

func TestAServerThatAnswersLateHasItsNameFromThenOn(t *testing.T) {
	answers := make(chan struct{})
	server := play(t, rbkitserver.Options{Hello: released, Commanded: func(rbkit.Command) { <-answers }})
	answer := sync.OnceFunc(func() { close(answers) })
	t.Cleanup(answer)
	b := newBed(t, following(server), func(_ *bed, c *Config) {
		c.Timeout, c.StateInterval = 50*time.Millisecond, 50*time.Millisecond
	})
	service := func() string {
		p := b.receiver.servers[0].Lives.Status().Process
		if p == nil {
			return ""
		}
		name, _ := p.Origin.Resource.Attributes().Get(origin.AttributeServiceName)
		return name.Str()
	}
	b.Await("a server without a name", func() bool { return service() == "unknown_service:ruby" })
	before := b.state().Origin
	answer()
	b.Await("its name", func() bool { return service() == released.ProcessName })
	now := b.state().Origin
	assert.Equal(t, before.Begun, now.Begun, "it is the same process")
	assert.Zero(t, b.Counter("restarts"))
	gc := func(k rbkit.Kind) func(*rbkit.Collection) error {
		return func(c *rbkit.Collection) error { return c.GC(k, rbkit.Time(recorded.UnixMilli())) }
	}
	server.awaitSubscriber()
	for i, k := range []rbkit.Kind{rbkit.GCStart, rbkit.GCEndMark, rbkit.GCEndSweep} {
		server.publishNumbered(uint64(i), gc(k))
	}
	b.Await("spans", func() bool { return b.Traces.SpanCount() > 0 })
	name, _ := b.Traces.AllTraces()[0].ResourceSpans().At(0).Resource().Attributes().Get(origin.AttributeServiceName)
	assert.Equal(t, released.ProcessName, name.Str())
}
