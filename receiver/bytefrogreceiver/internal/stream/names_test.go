// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

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
		assert.EqualValues(t, threadBytes+len(name), b.Bounded())
	}
	assert.EqualValues(t, 1, n.arrivals.Load(), "events wait for the first only")
}

func TestRenamingAThreadAgainAndAgainUsesNoMoreMemory(t *testing.T) {
	b := memoryOf(1 << 20)
	n := newNames(b)
	for i := range 20_000 {
		_, _, err := n.mapThread(uint16(i%8), int64(i), fmt.Sprintf("request-%d", i))
		require.NoError(t, err)
	}
	assert.Less(t, b.Bounded(), int64(8*(threadBytes+20)))
}

func TestNamesBeyondTheMemoryAreAnErrorAndFillTheMemoryOfTheRun(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for name, add := range map[string]func(*names) error{
		"a method": func(n *names) error { _, err := n.mapMethod(1, long); return err },
		"an ID": func(n *names) error {
			_, _ = n.mapMethod(1, "short")
			n.memory.Reserve(2000 - int(n.memory.Bounded()))
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
			require.ErrorIs(t, add(n), ErrMemory)
			assert.True(t, n.memory.IsFull())
			assert.Equal(t, errLimit, n.memory.Reason())
			assert.Same(t, nameless, n.numberedMethod(9))
		})
	}
}

func TestDroppedNamesReturnTheirMemory(t *testing.T) {
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
	assert.EqualValues(t, n.reserved, n.memory.Bounded())
	assert.Equal(t, n.memory.Bounded(), n.memory.Held())
	n.drop()
	n.drop()
	assert.Zero(t, n.memory.Bounded())
	assert.Zero(t, n.memory.Held())
	assert.Nil(t, n.method(1))
}

func TestATextThatIsNoSignatureIsTheName(t *testing.T) {
	n := newNames(memoryOf(1 << 20))
	_, err := n.mapMethod(1, "a text of an old agent")
	require.NoError(t, err)
	assert.Equal(t, &callevent.Function{
		Qualified: "a text of an old agent", Display: "a text of an old agent", Text: "a text of an old agent",
	}, n.method(1))
	_, err = n.mapMethod(2, "demo/Shop$Order.process;0;()V")
	require.NoError(t, err)
	assert.Equal(t, &callevent.Function{
		Qualified: "demo.Shop$Order.process", Display: "Shop$Order.process", Text: "demo/Shop$Order.process;0;()V",
	}, n.method(2))
}

func TestCachesFindIndexesUntilTheyForgetThem(t *testing.T) {
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
	assert.LessOrEqual(t, b.Bounded(), int64(2<<20))
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
	assert.False(t, b.IsFull(), "the run goes on without")
	c.release()
	assert.Zero(t, b.Bounded())
}

func TestCachesReturnTheirMemory(t *testing.T) {
	b := memoryOf(1 << 20)
	c := newIDCache(b)
	for range 2 {
		c.remember(1000, 7)
		assert.NotZero(t, b.Bounded())
		c.release()
		assert.Zero(t, b.Bounded())
		_, ok := c.find(1000)
		assert.False(t, ok)
	}
}

// The names have usual and hostile shapes.
func TestTheReservedMemoryIsAboutTheMemoryOfTheHeap(t *testing.T) {
	for name, text := range map[string]func(i int) string{
		"usual signatures": func(i int) string {
			return fmt.Sprintf("com/example/shop/orders/Order%d.process;1;(Ljava/lang/String;I)V", i)
		},
		"short signatures":     func(i int) string { return fmt.Sprintf("a1/b0/c%d.mxxxxxxxxxx;0;()V", i) },
		"short texts":          func(i int) string { return fmt.Sprint(i) },
		"long texts":           func(i int) string { return fmt.Sprint(i, strings.Repeat("x", 5000)) },
		"long signatures":      func(i int) string { return fmt.Sprintf("a/b%d.%s;1;()V", i, strings.Repeat("x", 5000)) },
		"many IDs of one text": func(int) string { return "demo/Shop.open;1;()V" },
	} {
		t.Run(name, func(t *testing.T) {
			count := 100_000
			if strings.HasPrefix(name, "long") {
				count = 4_000
			}
			if testing.Short() {
				count /= 5
			}
			n := newNames(memoryOf(1 << 30))
			before := heapInUse()
			for i := range count {
				_, err := n.mapMethod(uint32(i), text(i))
				require.NoError(t, err)
			}
			held := float64(heapInUse() - before)
			t.Logf("%.1f MiB in the heap, %.1f MiB counted", held/(1<<20), float64(n.memory.Bounded())/(1<<20))
			assert.InEpsilon(t, held, n.memory.Bounded(), 0.3, "%.1f MiB in the heap, %.1f MiB counted", held/(1<<20), float64(n.memory.Bounded())/(1<<20))
			runtime.KeepAlive(n)
		})
	}
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
