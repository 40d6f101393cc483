// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
)

func enter(sequence, method uint32, thread uint16, at uint32) []byte {
	return bytefrog.AppendEvent(nil, bytefrog.Event{Type: bytefrog.TypeMethodEntry, Sequence: sequence, Method: method, Thread: thread, Time: at})
}

func method(id uint32, name string) []byte {
	return encode(bytefrog.MapMethod{Method: id, Signature: "demo/Shop." + name + ";1;()V"})
}

func thread(id uint16, from uint32, name string) []byte {
	return encode(bytefrog.MapThreadName{Thread: id, Time: from, Name: name})
}

// awaitReceived waits until the first run has received n messages with a number.
func (b *bed) awaitReceived(n uint64) {
	b.T.Helper()
	b.Await(fmt.Sprintf("%d events", n), func() bool { return b.receiver.env.registry.lookup(1).State().Events == n })
}

func TestEventsWaitForNamesThatArriveOnOtherConnections(t *testing.T) {
	b := newBed(t, quickly)
	a := connect(b, 1)
	p, other := a.join(), a.join()
	p.write(enter(0, 5, 3, 0))
	b.awaitReceived(1)
	p.write(bytefrog.AppendEvent(nil, bytefrog.Event{Type: bytefrog.TypeExceptionBubble, Sequence: 1, Method: 5, Thread: 3, Exception: 9}))
	b.awaitReceived(2)
	assert.Zero(t, b.events())
	// The connection is read further: events with names do not wait.
	p.write(append(namesOne(), calls(2, 1)...))
	b.Await("the events that are named", func() bool { return b.events() == 2 })
	other.write(method(5, "late"))
	other.write(thread(3, 0, "worker"))
	other.send(bytefrog.MapException{Exception: 9, Name: "java.io.IOException"})
	b.Await("the others", func() bool { return b.events() == 4 })
	a.finish()
	b.awaitRuns(0)
	s := b.only()
	assert.Equal(t, called{kind: callevent.KindEnter, function: "demo.Shop.late", lane: 3, thread: "worker"}, s.events[0])
	assert.Equal(t, called{kind: callevent.KindUnwind, function: "demo.Shop.late", lane: 3, thread: "worker", exception: "java.io.IOException"}, s.events[1])
	assert.EqualValues(t, 2, b.Counter("names_late"))
	assert.Zero(t, b.Counter("names_unknown"))
}

func TestEventsWithoutNamesHaveTheirIDsAsNamesAfterNameWait(t *testing.T) {
	b := newBed(t, quickly, func(_ *bed, c *Config) { c.NameWait = 30 * time.Millisecond })
	a := connect(b, 1)
	p := a.join()
	p.write(enter(0, 123, 3, 0))
	p.write(bytefrog.AppendEvent(nil, bytefrog.Event{Type: bytefrog.TypeExceptionBubble, Sequence: 1, Method: 123, Thread: 3, Exception: 9}))
	b.Await("the events", func() bool { return b.events() == 2 })
	a.finish()
	b.awaitRuns(0)
	s := b.only()
	assert.Equal(t, called{kind: callevent.KindEnter, function: "unknown.method#123", lane: 3}, s.events[0])
	assert.Equal(t, called{kind: callevent.KindUnwind, function: "unknown.method#123", lane: 3}, s.events[1])
	assert.EqualValues(t, 2, b.Counter("names_unknown"))
}

func TestNamesThatArriveAfterTheEndOfAConnectionApply(t *testing.T) {
	b := newBed(t, quickly)
	a := connect(b, 1)
	p, other := a.join(), a.join()
	p.write(enter(0, 5, 3, 0))
	p.close()
	b.Await("the end of the connection", func() bool { return b.receiver.env.registry.lookup(1).State().Connections == 1 })
	other.write(append(method(5, "late"), thread(3, 0, "worker")...))
	a.finish()
	b.awaitRuns(0)
	assert.Equal(t, called{kind: callevent.KindEnter, function: "demo.Shop.late", lane: 3, thread: "worker"}, b.only().events[0])
}

func TestAnIDThatIsMappedAgainMeansTheOtherTextFromThenOn(t *testing.T) {
	b := newBed(t, quickly)
	a := connect(b, 1)
	p, other := a.join(), a.join()
	p.write(append(method(5, "first"), thread(3, 0, "worker")...))
	p.write(enter(0, 5, 3, 0))
	b.awaitReceived(1)
	other.write(enter(1, 5, 3, 0))
	b.awaitReceived(2)
	// In one piece: a name applies to messages after it on the same connection.
	p.write(append(append(enter(2, 5, 3, 0), method(5, "second")...), enter(3, 5, 3, 0)...))
	b.awaitReceived(4)
	other.write(enter(4, 5, 3, 0))
	// The same text again changes nothing, and neither does a second ID for it.
	p.write(append(append(method(5, "second"), method(6, "second")...), enter(5, 6, 3, 0)...))
	b.awaitReceived(6)
	a.finish()
	b.awaitRuns(0)
	s := b.only()
	for sequence, want := range []string{"first", "first", "first", "second", "second", "second"} {
		assert.Equal(t, "demo.Shop."+want, s.events[uint64(sequence)].function, "event %d", sequence)
	}
	assert.EqualValues(t, 1, b.Counter("names_remapped"))
}

func TestConnectionsThatHaveEndedHaveNoMemory(t *testing.T) {
	b := newBed(t, quickly, withDataConnections(2))
	a := connect(b, 1)
	run := b.receiver.env.registry.lookup(1)
	a.join().write(namesOne())
	b.Await("the names", func() bool { return run.State().Bytes == uint64(len(namesOne())) })
	names := run.Memory().Bounded()
	require.Positive(t, names)
	for i := range uint32(5) {
		p := a.join()
		p.write(append(namesOne(), append(calls(20*i, 5), enter(20*i+10, 77, 1, 0)...)...))
		p.close()
		b.Await("its events", func() bool { return run.State().Events == uint64(11*(i+1)) })
		b.Await("its end", func() bool { return run.State().Connections == 1 })
	}
	a.data[0].write(method(77, "late"))
	b.Await("the memory of names alone", func() bool { return b.events() == 5*11 && run.Memory().Bounded() < names+1000 })
	a.finish()
	b.awaitRuns(0)
}

func TestAnEventWithTheLongestNamesFitsIntoTheSmallestBatch(t *testing.T) {
	b := newBed(t, quickly, withDataConnections(1), func(_ *bed, c *Config) { c.Batch.MaxBytes = callevent.MinBatchBytes })
	a := connect(b, 1)
	p := a.join()
	long := strings.Repeat("x", bytefrog.MaxString)
	for id := range uint32(3) {
		name := string(rune('a'+id)) + long[1:]
		p.send(
			bytefrog.MapMethod{Method: id, Signature: name},
			bytefrog.MapThreadName{Thread: uint16(id), Name: name},
			bytefrog.MapException{Exception: id, Name: name},
		)
		p.write(bytefrog.AppendEvent(nil, bytefrog.Event{
			Type: bytefrog.TypeException, Sequence: id, Method: id, Thread: uint16(id), Exception: id,
		}))
	}
	a.finish()
	b.awaitRuns(0)
	assert.Len(t, b.only().events, 3)
}
