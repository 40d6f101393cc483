// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"fmt"
	"math"
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
	b.t.Helper()
	b.await(fmt.Sprintf("%d events", n), func() bool { return b.receiver.env.registry.lookup(1).stream.received.Load() == n })
}

func TestEventsWaitForNamesThatComeOnOtherConnections(t *testing.T) {
	b := newBed(t, quickly)
	a := connect(b, 1)
	p, other := a.join(), a.join()
	p.write(enter(0, 5, 3, 0))
	b.awaitReceived(1)
	p.write(bytefrog.AppendEvent(nil, bytefrog.Event{Type: bytefrog.TypeExceptionBubble, Sequence: 1, Method: 5, Thread: 3, Exception: 9}))
	b.awaitReceived(2)
	assert.Zero(t, b.pipeline.events())
	// The connection is read on: what has its names doesn't wait.
	p.write(append(namesOne(), calls(2, 1)...))
	b.await("the events that are named", func() bool { return b.pipeline.events() == 2 })
	other.write(method(5, "late"))
	other.write(thread(3, 0, "worker"))
	other.send(bytefrog.MapException{Exception: 9, Name: "java.io.IOException"})
	b.await("the others", func() bool { return b.pipeline.events() == 4 })
	a.finish()
	b.awaitRuns(0)
	s := b.pipeline.only(t)
	assert.Equal(t, called{kind: callevent.KindEnter, function: "demo.Shop.late", lane: 3, thread: "worker"}, s.events[0])
	assert.Equal(t, called{kind: callevent.KindUnwind, function: "demo.Shop.late", lane: 3, thread: "worker", exception: "java.io.IOException"}, s.events[1])
	assert.EqualValues(t, 2, b.metric("receiver_bytefrog_names_late"))
	assert.Zero(t, b.metric("receiver_bytefrog_names_unknown"))
}

func TestEventsWhoseNamesDoNotComeGoByTheirNumbers(t *testing.T) {
	b := newBed(t, quickly, func(_ *bed, c *Config) { c.NameWait = 30 * time.Millisecond })
	a := connect(b, 1)
	p := a.join()
	p.write(enter(0, 123, 3, 0))
	p.write(bytefrog.AppendEvent(nil, bytefrog.Event{Type: bytefrog.TypeExceptionBubble, Sequence: 1, Method: 123, Thread: 3, Exception: 9}))
	b.await("the events", func() bool { return b.pipeline.events() == 2 })
	a.finish()
	b.awaitRuns(0)
	s := b.pipeline.only(t)
	assert.Equal(t, called{kind: callevent.KindEnter, function: "unknown.method#123", lane: 3}, s.events[0])
	assert.Equal(t, called{kind: callevent.KindUnwind, function: "unknown.method#123", lane: 3}, s.events[1])
	assert.EqualValues(t, 2, b.metric("receiver_bytefrog_names_unknown"))
}

func TestNamesThatComeAfterTheEndOfAConnectionStillName(t *testing.T) {
	b := newBed(t, quickly)
	a := connect(b, 1)
	p, other := a.join(), a.join()
	p.write(enter(0, 5, 3, 0))
	p.close()
	b.await("the end of the connection", func() bool { return b.receiver.env.registry.lookup(1).data.reading() == 1 })
	other.write(append(method(5, "late"), thread(3, 0, "worker")...))
	a.finish()
	b.awaitRuns(0)
	assert.Equal(t, called{kind: callevent.KindEnter, function: "demo.Shop.late", lane: 3, thread: "worker"}, b.pipeline.only(t).events[0])
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
	// In one piece: it holds for what is decoded after it on the same connection.
	p.write(append(append(enter(2, 5, 3, 0), method(5, "second")...), enter(3, 5, 3, 0)...))
	b.awaitReceived(4)
	other.write(enter(4, 5, 3, 0))
	// The same text again changes nothing, and neither does a second ID for it.
	p.write(append(append(method(5, "second"), method(6, "second")...), enter(5, 6, 3, 0)...))
	b.awaitReceived(6)
	a.finish()
	b.awaitRuns(0)
	s := b.pipeline.only(t)
	for sequence, want := range []string{"first", "first", "first", "second", "second", "second"} {
		assert.Equal(t, "demo.Shop."+want, s.events[uint64(sequence)].function, "event %d", sequence)
	}
	assert.EqualValues(t, 1, b.metric("receiver_bytefrog_names_remapped"))
}

func TestTheLatestNameOfAThreadIsThatOfTheLatestTime(t *testing.T) {
	b := memoryOf(1 << 20)
	n := newNames(b)
	_, known := n.thread(3)
	assert.False(t, known)
	for _, step := range []struct {
		from    int64
		name    string
		isFirst bool
		latest  string
	}{
		{20, "second", true, "second"},
		{10, "first", true, "second"},
		{15, "between", false, "second"},
		{20, "at the same time", false, "at the same time"},
		{30, "third", false, "third"},
		{5, "before all", true, "third"},
	} {
		isFirst, _, err := n.mapThread(3, step.from, step.name)
		require.NoError(t, err)
		assert.Equal(t, step.isFirst, isFirst, step.name)
		name, known := n.thread(3)
		assert.True(t, known)
		assert.Equal(t, step.latest, name, "after %s", step.name)
		assert.EqualValues(t, threadBytes+len(name), b.used.Load())
	}
	assert.EqualValues(t, 1, n.arrivals.Load(), "events wait for the first only")
}

func TestRenamingThreadsForEverTakesNoMemory(t *testing.T) {
	b := memoryOf(1 << 20)
	n := newNames(b)
	for i := range 20_000 {
		_, _, err := n.mapThread(uint16(i%8), int64(i), fmt.Sprintf("request-%d", i))
		require.NoError(t, err)
	}
	assert.Less(t, b.used.Load(), int64(8*(threadBytes+20)))
}

func TestNamesBeyondTheMemoryAreAnErrorAndTheRunHasToLeave(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for name, add := range map[string]func(*names) error{
		"a method": func(n *names) error { _, err := n.mapMethod(1, long); return err },
		"an ID": func(n *names) error {
			_, _ = n.mapMethod(1, "short")
			n.memory.tryTake(2000 - int(n.memory.used.Load()))
			_, err := n.mapMethod(2, "short")
			return err
		},
		"an exception": func(n *names) error { _, err := n.mapException(1, long); return err },
		"a thread":     func(n *names) error { _, _, err := n.mapThread(1, 0, long); return err },
		"another name": func(n *names) error {
			_, _, _ = n.mapThread(1, 0, "short")
			_, _, err := n.mapThread(1, 1, long)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNames(memoryOf(2000))
			require.ErrorIs(t, add(n), errRunMemory)
			assert.True(t, n.memory.isFull())
			assert.EqualError(t, n.memory.why, "limits.max_run_memory is reached (2000)")
			assert.Same(t, nameless, n.numberedMethod(9))
		})
	}
}

func TestDroppedNamesGiveTheirMemoryBack(t *testing.T) {
	n := newNames(memoryOf(1 << 20))
	for id := range uint32(100) {
		_, err := n.mapMethod(id, fmt.Sprintf("demo/Shop.m%d;0;()V", id%50))
		require.NoError(t, err)
		_, err = n.mapException(id%40, fmt.Sprint("java.lang.E", id))
		require.NoError(t, err)
		_, _, err = n.mapThread(uint16(id%7), int64(id), fmt.Sprint("worker-", id))
		require.NoError(t, err)
		n.numberedMethod(1000 + id)
	}
	assert.EqualValues(t, n.taken, n.memory.used.Load())
	assert.Equal(t, n.memory.used.Load(), n.memory.account.Used())
	n.drop()
	n.drop()
	assert.Zero(t, n.memory.used.Load())
	assert.Zero(t, n.memory.account.Used())
	assert.Nil(t, n.method(1))
}

func TestTextThatIsNoSignatureIsKeptAsItIs(t *testing.T) {
	n := newNames(memoryOf(1 << 20))
	_, err := n.mapMethod(1, "what old agents send")
	require.NoError(t, err)
	assert.Equal(t, &callevent.Function{
		Qualified: "what old agents send", Display: "what old agents send", Text: "what old agents send",
	}, n.method(1))
	_, err = n.mapMethod(2, "demo/Shop$Order.process;0;()V")
	require.NoError(t, err)
	assert.Equal(t, &callevent.Function{
		Qualified: "demo.Shop$Order.process", Display: "Shop$Order.process", Text: "demo/Shop$Order.process;0;()V",
	}, n.method(2))
}

func TestCachesFindWhatTheyWereToldUntilTheyForget(t *testing.T) {
	b := memoryOf(2 << 20)
	c := newIDCache(b)
	for _, id := range []uint32{0, 255, 256, 100_000, maxDense, math.MaxUint32} {
		_, ok := c.find(id)
		assert.False(t, ok, "ID %d", id)
		c.remember(id, uint16(id%1000))
		index, ok := c.find(id)
		assert.True(t, ok, "ID %d", id)
		assert.Equal(t, uint16(id%1000), index)
	}
	c.forget()
	for _, id := range []uint32{0, 255, 256, 100_000, maxDense, math.MaxUint32} {
		_, ok := c.find(id)
		assert.False(t, ok, "ID %d", id)
	}
	assert.LessOrEqual(t, b.used.Load(), b.limit)
}

func TestCachesWithoutMemoryRememberNothing(t *testing.T) {
	b := memoryOf(2 * sparseBytes)
	c := newIDCache(b)
	for id := range uint32(3) {
		c.remember(id, 7)
	}
	for id := range uint32(3) {
		_, ok := c.find(id)
		assert.Equal(t, id < 2, ok, "ID %d", id)
	}
	assert.False(t, b.isFull(), "the run goes on without")
	c.release()
	assert.Zero(t, b.used.Load())
}

func TestCachesGiveTheirMemoryBack(t *testing.T) {
	b := memoryOf(1 << 20)
	c := newIDCache(b)
	for range 2 {
		c.remember(1000, 7)
		assert.NotZero(t, b.used.Load())
		c.release()
		assert.Zero(t, b.used.Load())
		_, ok := c.find(1000)
		assert.False(t, ok)
	}
}

func TestConnectionsThatHaveEndedHaveNoMemory(t *testing.T) {
	b := newBed(t, quickly, withDataConnections(1))
	a := connect(b, 1)
	run := b.receiver.env.registry.lookup(1)
	var used []int64
	for i := range uint32(5) {
		p := a.join()
		p.write(append(namesOne(), calls(10*i, 5)...))
		p.close()
		b.await("its events", func() bool { return run.stream.received.Load() == uint64(10*(i+1)) })
		run.data.finished.Wait()
		used = append(used, run.stream.memory.used.Load())
	}
	assert.Equal(t, []int64{used[0], used[0], used[0], used[0], used[0]}, used)
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
	assert.Len(t, b.pipeline.only(t).events, 3)
}
