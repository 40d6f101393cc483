// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/componentkit/socket"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
)

func TestNamesAreWaitedForWhileTheirConnectionIsHeldUp(t *testing.T) {
	const wait = 20 * time.Millisecond
	b := newBed(t, quickly, quickRetries, func(_ *bed, c *Config) { c.NameWait = wait })
	a := connect(b, 1)
	held, p := a.join(), a.join()
	// The pipeline refuses the batch that stands in front of the name.
	b.Traces.RefuseWith(receivertestbed.ErrRefused)
	run := b.receiver.env.registry.lookup(1)
	held.write(append(namesOne(), calls(0, 1)...))
	b.Await("the connection to be held up", func() bool { return run.State().Waiting == 1 })
	held.write(append(method(5, "late"), thread(3, 0, "worker")...))
	p.write(enter(2, 5, 3, 0))
	came := time.Now()
	b.awaitReceived(3)
	b.Await("many times the wait", func() bool { return time.Since(came) > 20*wait })
	assert.Zero(t, b.Counter("names_unknown"))
	b.Traces.RefuseWith(nil)
	b.Await("all events", func() bool { return b.events() == 3 })
	a.finish()
	b.awaitRuns(0)
	assert.Equal(t, "demo.Shop.late", b.only().events[2].function)
}

func TestNamesAreWaitedForAfterTheirAgentWasHeldUp(t *testing.T) {
	t.Parallel()
	const wait, refused = 2 * time.Second, 2100 * time.Millisecond
	b := newBed(t, quickly, quickRetries, func(_ *bed, c *Config) { c.NameWait = wait })
	a := connect(b, 1)
	held, p := a.join(), a.join()
	b.Traces.RefuseWith(receivertestbed.ErrRefused)
	run := b.receiver.env.registry.lookup(1)
	held.write(append(namesOne(), calls(0, 1)...))
	b.Await("the connection to be held up", func() bool { return run.State().Waiting == 1 })
	p.write(enter(2, 5, 3, 0))
	sent := uint64(len(namesOne()) + len(calls(0, 1)) + len(enter(2, 5, 3, 0)))
	came := time.Now()
	b.Await("the event to have waited long enough", func() bool { return time.Since(came) > refused })
	b.Traces.RefuseWith(nil)
	b.Await("all sockets to be empty", func() bool { return run.State().Waiting == 0 && run.State().Bytes == sent })
	accepted := time.Now()
	b.Await("several looks for the name", func() bool { return time.Since(accepted) > 200*time.Millisecond })
	// Only now the held-up agent gets to send the name.
	held.write(append(method(5, "late"), thread(3, 0, "worker")...))
	b.Await("all events", func() bool { return b.events() == 3 })
	assert.Zero(t, b.Counter("names_unknown"))
	a.finish()
	b.awaitRuns(0)
	assert.Equal(t, "demo.Shop.late", b.only().events[2].function)
}

func TestAMethodThatWentByItsNumberDoesSoToTheEndOfTheRun(t *testing.T) {
	b := newBed(t, quickly, func(_ *bed, c *Config) { c.NameWait = 20 * time.Millisecond })
	a := connect(b, 1)
	p, other := a.join(), a.join()
	p.write(append(thread(3, 0, "worker"), enter(0, 5, 3, 0)...))
	b.Await("the entry", func() bool { return b.events() == 1 })
	other.write(append(method(5, "late"), enter(1, 5, 3, 0)...))
	p.write(bytefrog.AppendEvent(nil, bytefrog.Event{Type: bytefrog.TypeMethodExit, Sequence: 2, Method: 5, Thread: 3}))
	b.Await("the others", func() bool { return b.events() == 3 })
	a.finish()
	b.awaitRuns(0)
	for sequence, e := range b.only().events {
		assert.Equal(t, "unknown.method#5", e.function, "event %d: an entry and its exit are one method", sequence)
	}
}

func TestUnreadDataIsSeen(t *testing.T) {
	b := newBed(t, quickly)
	a := connect(b, 1)
	assert.False(t, socket.Unread(a.control.conn))
	p := dial(t, b.address())
	p.send(bytefrog.DataHello{Run: 99})
	b.Await("the answer", func() bool { return socket.Unread(p.conn) })
	p.expectError()
	p.expectEnd()
	assert.False(t, socket.Unread(p.conn), "the end is nothing to read")
	a.finish()
	b.awaitRuns(0)
}

func TestAConnectionThatIsAheadWaitsForTheOthers(t *testing.T) {
	const lead, events = 1000, 40_000
	b := newBed(t, quickly, func(_ *bed, c *Config) { c.Limits.MaxConnectionLead = lead })
	a := connect(b, 1)
	behind, ahead := a.join(), a.join()
	behind.write(namesOne())
	// The lower half of the numbers arrives slowly on one connection, the upper half fast on the other.
	behind.write(calls(0, 1))
	b.awaitReceived(2)
	go func() { _, _ = ahead.conn.Write(calls(events/2, events/4)) }()
	run := b.receiver.env.registry.lookup(1)
	b.Await("the connection that is ahead", func() bool { return run.State().Missing > lead })
	for first := uint32(2); first < events/2; first += 1000 {
		before := run.State().Events
		behind.write(calls(first, min(500, int(events/2-first)/2)))
		b.Await("more events", func() bool { return run.State().Events > before })
	}
	b.awaitReceived(events)
	assert.Zero(t, run.State().Missing)
	a.finish()
	b.awaitRuns(0)
	assert.Len(t, b.only().events, events)
}

func TestAConnectionAheadIsReadWhileTheOthersAreSilent(t *testing.T) {
	b := newBed(t, quickly, func(_ *bed, c *Config) { c.Limits.MaxConnectionLead = 10 })
	a := connect(b, 1)
	p := a.join()
	a.join()
	p.write(namesOne())
	const lost = 5000
	for i := range uint32(5) {
		p.write(calls(lost+10*i, 5))
	}
	b.awaitReceived(50)
	a.finish()
	b.awaitRuns(0)
	s := b.only()
	assert.Len(t, s.events, 50)
	assert.Equal(t, callevent.End(lost+50, callevent.CauseEnded), s.end(t))
}
