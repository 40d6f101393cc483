// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/greys"
)

func TestMethodsBeyondTheLimitCountAsOther(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Monitors = []MonitorConfig{monitor("demo.*", "*")}
		c.Limits.MaxMethods = 2
	})
	s := script(t, b, ProtocolConsole)
	b.start()
	s.next().answer(affectedOne, table(row(1, "demo.A", "a", 1, 0, 0), row(1, "other", "other", 2, 0, 0), row(1, "demo.C", "c", 3, 1, ms(2)), row(1, "demo.D", "d", 4, 1, ms(1))))
	metrics := b.collect()
	assert.Equal(t, map[string]float64{"demo.A.a": 1, "other.other": 2, "other": 7}, values(metrics, "java.method.calls"))
	assert.Equal(t, 2.0, values(metrics, "java.method.failures")["other"])
	assert.InDelta(t, 0.01, values(metrics, "java.method.time")["other"], 1e-9)
	assert.NotContains(t, values(metrics, "java.method.duration.mean"), "other")
	assert.EqualValues(t, 2, b.point("folded"))
}

func TestAMethodOfTwoMonitorsIsCountedOnce(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Monitors = []MonitorConfig{monitor("demo.*", "*"), monitor("demo.Shop", "*")} })
	s := script(t, b, ProtocolConsole)
	b.start()
	all := s.byPattern(2)
	for range 2 {
		all["demo.*"].answer(table(row(1, "demo.Shop", "checkout", 5, 0, 0)))
		all["demo.Shop"].answer(table(row(1, "demo.Shop", "checkout", 5, 0, 0), row(1, "demo.Shop", "price", 1, 0, 0)))
	}
	assert.Equal(t, map[string]float64{"demo.Shop.checkout": 10, "demo.Shop.price": 2}, values(b.collect(), "java.method.calls"))
	assert.EqualValues(t, 2, b.point("rows_ignored"))
}

// A monitor that is asked for counts from zero: rows of the one before don't come again,
// whatever the server's clock says.
func TestAllRowsAreCountedWhateverTheirTimes(t *testing.T) {
	c := newCalls(10)
	for number, seconds := range [][]int{{59, 59, 5}, {30, 59, 60}, {-3600}} {
		for _, at := range seconds {
			of := row(at, "a", "b", 1, 0, 0)
			c.count(&run{task: &task{want: &want{}}, number: int64(number)}, &of, receivedAt)
		}
	}
	noTime := greys.MethodStatistics{Class: "a", Method: "b", Calls: 1}
	c.count(&run{task: &task{want: &want{}}, number: 5}, &noTime, receivedAt)
	assert.EqualValues(t, 8, c.methods[methodName{"a", "b"}].calls)
}

func TestTheLastCycleIsSaidForTwoCycles(t *testing.T) {
	c := newCalls(10)
	r := &run{task: &task{want: &want{ask: ask{cycle: 10 * time.Second}}}, number: 1}
	of := row(1, "a", "b", 2, 1, ms(4))
	c.count(r, &of, receivedAt)
	assert.True(t, c.states(receivedAt.Add(19 * time.Second))[0].hasCycle)
	assert.False(t, c.states(receivedAt.Add(20 * time.Second))[0].hasCycle)
	idle := row(11, "a", "b", 0, 0, 0)
	c.count(r, &idle, receivedAt)
	assert.False(t, c.states(receivedAt)[0].hasCycle, "there was no call")
	assert.EqualValues(t, 2, c.states(receivedAt)[0].calls)
}

func TestSumsEndWithTheLargestNumber(t *testing.T) {
	c := newCalls(10)
	r := &run{task: &task{want: &want{}}, number: 1}
	for at := range 3 {
		of := row(at, "a", "b", math.MaxInt64/2, 0, math.MaxInt64)
		c.count(r, &of, receivedAt)
	}
	assert.Equal(t, int64(math.MaxInt64), c.states(receivedAt)[0].calls)
}

func TestNamesThatAreKeptAreNotLong(t *testing.T) {
	c, long := newCalls(10), strings.Repeat("x", 1<<20)
	of := row(1, long, long, 1, 0, 0)
	c.count(&run{task: &task{want: &want{}}, number: 1}, &of, receivedAt)
	for name, m := range c.methods {
		assert.Len(t, name.class+name.method, 2*maxTextBytes)
		assert.Empty(t, m.cycle.Class+m.cycle.Method)
	}
	n := newInventory(10)
	n.see(&run{task: &task{want: &want{}}, number: 1}, long, long, "")
	for _, f := range n.entries {
		assert.Len(t, f.name, maxTextBytes)
	}
}

// However long names are, an inventory takes no more memory than as many common ones.
func TestTheNamesOfAnInventoryAreBoundedTogether(t *testing.T) {
	n := newInventory(100)
	list := func(number int64) {
		for i := range 100 {
			name := strings.Repeat(string(rune('a'+number)), 2*maxTextBytes)
			n.see(&run{task: &task{want: &want{}}, number: number}, name+strconv.Itoa(i), name, "")
		}
	}
	list(1)
	assert.Len(t, n.entries, 26)
	assert.EqualValues(t, 74, n.dropped)
	// There is room again where they are gone.
	assert.Len(t, n.gone(&run{task: &task{want: &want{}}, number: 2}), 26)
	list(2)
	assert.Len(t, n.entries, 26)
	assert.EqualValues(t, 148, n.dropped)
}

// What was cut doesn't hold the text that it was cut of.
func TestATextThatIsCutIsACopy(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	short := text(long)
	assert.Len(t, short, maxTextBytes)
	assert.NotSame(t, unsafe.StringData(long), unsafe.StringData(short))
}

func TestCallsWithoutTheirTimeHaveNone(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Monitors = []MonitorConfig{monitor("demo.*", "*")}
		c.Limits.MaxMethods = 2
	})
	s := script(t, b, ProtocolGP)
	b.start()
	untimed := row(1, "demo.B", "b", 1000, 0, 0)
	untimed.HasMean = false
	beyond := untimed
	beyond.Class = "demo.C"
	s.next().answer(affectedOne, table(row(1, "demo.A", "a", 2, 0, ms(3)), untimed, beyond),
		table(row(2, "demo.A", "a", 0, 0, 0), row(2, "demo.B", "b", 1, 0, ms(3))))
	metrics := b.collect()
	assert.Equal(t, map[string]float64{"demo.A.a": 2, "demo.B.b": 1001, "other": 1000}, values(metrics, "java.method.calls"))
	assert.Equal(t, map[string]float64{"demo.A.a": 0.006}, values(metrics, "java.method.time"), "that of some calls is not the time of all")
}

// What a process was like is over with it; what it has done is not.
func TestOfAProcessThatHasEndedOnlySumsAreSaid(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Monitors = []MonitorConfig{monitor("demo.*", "*")} })
	s := script(t, b, ProtocolGP)
	b.start()
	s.next().answer(affectedOne, table(row(1, "demo.A", "a", 2, 1, ms(3))))
	state := b.receiver.living()[0]
	names := func() (names []string) {
		metrics := b.receiver.env.metrics.metrics([]processState{state}, receivedAt)
		for _, m := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			names = append(names, m.Name())
		}
		slices.Sort(names)
		return names
	}
	sums := []string{"greys.reconnects", "greys.replies", "greys.replies.bad", "greys.replies.missing", "java.method.calls", "java.method.failures", "java.method.time"}
	assert.Subset(t, names(), append([]string{
		"greys.matched.classes", "greys.matched.methods", "greys.session.count", "java.method.duration.max", "java.method.duration.mean", "java.method.duration.min", "java.method.failure_ratio",
	}, sums...))
	state.over = true
	assert.Equal(t, sums, names())
}
