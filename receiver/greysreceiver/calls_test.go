// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
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

func TestAMethodWithUntimedCallsHasNoTime(t *testing.T) {
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
	assert.Equal(t, map[string]float64{"demo.A.a": 0.006}, values(metrics, "java.method.time"), "the time of some calls is not the total")
}

// Gauges end with the process; sums stay.
func TestAnEndedProcessReportsOnlySums(t *testing.T) {
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
	state.Over = true
	assert.Equal(t, sums, names())
}
