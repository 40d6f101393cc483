// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"net"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/session"
)

// state has the numbers of agents and loggers by domain.
type state struct {
	agents, loggers [domainCount]int64
}

// state counts the registered agents and their loggers.
func (r *registry) state() (s state) {
	for _, a := range r.agents() {
		s.agents[a.Agent().Domain]++
		s.loggers[a.Agent().Domain] += a.Loggers()
	}
	return s
}

// metricsLoop makes the metrics of all agents together.
type metricsLoop struct {
	env      *environment
	builder  *metadata.MetricsBuilder
	resource pcommon.Resource
	began    time.Time
}

func startMetrics(env *environment, registry *registry, address net.Addr) {
	m := &metricsLoop{env: env, resource: newResource(env.config, unknownService, address.String(), true), began: env.Now()}
	if env.Next.Metrics != nil {
		m.builder = metadata.NewMetricsBuilder(env.config.MetricsBuilderConfig, env.Settings)
	}
	receiverkit.NewMetrics(env.Run, handover.MetricsSettings[state]{
		Living:  func() []state { return []state{registry.state()} },
		Metrics: func(states []state) pmetric.Metrics { return m.metrics(&states[0]) },
		// The only state is the receiver's, which ends with its metrics.
		MaxEnded: 0, Points: func(*state) int { return 0 }, What: "receivers",
		Dropped: receiverkit.CountBy(env.telemetry.builder.ReceiverLttngJulMetricPointsDropped),
	})
}

func (m *metricsLoop) metrics(s *state) pmetric.Metrics {
	now := pcommon.NewTimestampFromTime(m.env.Now())
	for _, domain := range lttngagent.Domains() {
		attribute := domainAttribute(domain)
		m.builder.RecordLttngAgentCountDataPoint(now, s.agents[domain], attribute)
		m.builder.RecordLttngLoggerCountDataPoint(now, s.loggers[domain], attribute)
		m.builder.RecordLttngAgentRegistrationsDataPoint(now, m.env.counts.registrations[domain].Load(), attribute)
		m.recordCommands(now, domain)
	}
	return m.builder.Emit(metadata.WithResource(m.resource), metadata.WithStartTimeOverride(pcommon.NewTimestampFromTime(m.began)))
}

// recordCommands records the commands of a domain that were sent.
func (m *metricsLoop) recordCommands(now pcommon.Timestamp, domain lttngagent.Domain) {
	for command := lttngagent.CommandList; command < commandCount; command++ {
		for r := range session.ResultCount {
			if n := m.env.counts.commands[domain][command][r].Load(); n > 0 {
				m.builder.RecordLttngAgentCommandsDataPoint(now, n, domainAttribute(domain), commandAttribute(command), resultAttribute(r))
			}
		}
	}
}
