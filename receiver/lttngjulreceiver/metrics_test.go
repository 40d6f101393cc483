// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// points returns the latest points of a metric.
func (b *bed) points(name string) (points []pmetric.NumberDataPoint) {
	all := b.Metrics.AllMetrics()
	if len(all) == 0 {
		return nil
	}
	for _, resource := range all[len(all)-1].ResourceMetrics().All() {
		for _, scope := range resource.ScopeMetrics().All() {
			for _, m := range scope.Metrics().All() {
				if m.Name() == name {
					for _, p := range m.Sum().DataPoints().All() {
						points = append(points, p)
					}
				}
			}
		}
	}
	return points
}

// point returns the sum of a metric for a domain.
func (b *bed) point(name, domain string) (sum int64) {
	for _, p := range b.points(name) {
		if d, _ := p.Attributes().Get(attributeDomain); d.Str() == domain {
			sum += p.IntValue()
		}
	}
	return sum
}

func TestMetricsCountAgentsAndLoggersByDomain(t *testing.T) {
	b := newBed(t, func(c *Config) { c.ResourceAttributes = map[string]any{"team": "shop"} })
	jul, _ := b.registered(lttngagent.JUL, "a", "b")
	go jul.serve("a", "b")
	python, _ := b.registered(lttngagent.Python, "c")
	b.Await("all loggers", func() bool {
		return b.point("lttng.logger.count", "jul") == 2 && b.point("lttng.logger.count", "python") == 1
	})
	assert.EqualValues(t, 1, b.point("lttng.agent.count", "jul"))
	assert.EqualValues(t, 1, b.point("lttng.agent.count", "python"))
	assert.Len(t, b.points("lttng.agent.count"), 4, "domains without agents are 0")
	require.NoError(t, python.conn.Close())
	b.Await("one has gone", func() bool { return b.point("lttng.agent.count", "python") == 0 })
	assert.Zero(t, b.point("lttng.logger.count", "python"))
	assert.EqualValues(t, 1, b.point("lttng.agent.registrations", "python"), "it is cumulative")

	all := b.Metrics.AllMetrics()
	attributes := all[0].ResourceMetrics().At(0).Resource().Attributes().AsRaw()
	assert.Equal(t, "unknown_service", attributes[attributeServiceName])
	assert.Equal(t, b.address(), attributes[attributeServiceInstanceID])
	assert.Equal(t, "shop", attributes["team"])
	assert.Contains(t, attributes, attributeHostName)
}

func TestMetricsCountResultsOfCommands(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Enable = []EnableRule{{Domain: "jul", Logger: "a"}, {Domain: "jul", Logger: "b"}} })
	a := b.register(lttngagent.JUL)
	a.next()
	a.answer(lttngagent.Success)
	a.next()
	a.answer(lttngagent.Invalid)
	a.expect(lttngagent.RegistrationDone{})
	require.Equal(t, lttngagent.List{}, a.next())
	require.NoError(t, a.conn.Close())
	want := map[string]int64{
		"enable success": 1, "enable invalid_command": 1, "registration_done success": 1, "list no_answer": 1,
	}
	b.Await("all commands", func() bool { return b.point("lttng.agent.commands", "jul") == 4 })
	got := map[string]int64{}
	for _, p := range b.points("lttng.agent.commands") {
		command, _ := p.Attributes().Get(attributeCommand)
		result, _ := p.Attributes().Get(attributeResult)
		got[command.Str()+" "+result.Str()] = p.IntValue()
	}
	assert.Equal(t, want, got)
	assert.EqualValues(t, 4, b.Counter("commands"))
}
