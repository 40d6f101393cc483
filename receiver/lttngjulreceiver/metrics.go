// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"net"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/metadata"
)

const (
	domainCount  = lttngagent.Log4j2 + 1
	commandCount = lttngagent.CommandDisableContext + 1
)

// counts are what has happened with all agents, by domain. They are for many goroutines.
type counts struct {
	registrations [domainCount]atomic.Int64
	commands      [domainCount][commandCount][resultCount]atomic.Int64
}

// registered counts a registration. The domain is one of the protocol's.
func (c *counts) registered(domain lttngagent.Domain) { c.registrations[domain].Add(1) }

func (c *counts) command(domain lttngagent.Domain, command lttngagent.CommandType, r result) {
	c.commands[domain][command][r].Add(1)
}

// state is how many agents and loggers there are, by domain.
type state struct {
	agents, loggers [domainCount]int64
}

// state counts the agents that are registered, and their loggers.
func (r *registry) state() (s state) {
	for _, a := range r.agents() {
		s.agents[a.who.Domain]++
		s.loggers[a.who.Domain] += a.loggers.Load()
	}
	return s
}

// metricsLoop hands on metrics of all agents together.
type metricsLoop struct {
	*handover.Metrics[state]
	env      *environment
	builder  *metadata.MetricsBuilder
	resource pcommon.Resource
	began    time.Time
}

func newMetricsLoop(env *environment, settings receiver.Settings, next consumer.Metrics, address net.Addr) *metricsLoop {
	m := &metricsLoop{env: env, resource: env.newResource(unknownService, address.String(), true), began: env.now()}
	if next != nil {
		m.builder = metadata.NewMetricsBuilder(env.config.MetricsBuilderConfig, settings)
	}
	m.Metrics = handover.NewMetrics(handover.MetricsSettings[state]{
		Settings: env.handoverSettings(), Next: next, Interval: env.config.CollectionInterval,
		Living:  func() []state { return []state{env.registry.state()} },
		Metrics: func(states []state) pmetric.Metrics { return m.metrics(&states[0]) },
		// The receiver is what lives, and it ends with its metrics.
		MaxEnded: 0, Points: func(*state) int { return 0 }, What: "receivers",
		Dropped: env.telemetry.metricPointsDropped,
	})
	return m
}

func (m *metricsLoop) metrics(s *state) pmetric.Metrics {
	now := pcommon.NewTimestampFromTime(m.env.now())
	for _, domain := range lttngagent.Domains() {
		attribute := domainAttribute(domain)
		m.builder.RecordLttngAgentCountDataPoint(now, s.agents[domain], attribute)
		m.builder.RecordLttngLoggerCountDataPoint(now, s.loggers[domain], attribute)
		m.builder.RecordLttngAgentRegistrationsDataPoint(now, m.env.counts.registrations[domain].Load(), attribute)
		m.recordCommands(now, domain)
	}
	return m.builder.Emit(metadata.WithResource(m.resource), metadata.WithStartTimeOverride(pcommon.NewTimestampFromTime(m.began)))
}

// recordCommands records the commands of a domain, of which there were any.
func (m *metricsLoop) recordCommands(now pcommon.Timestamp, domain lttngagent.Domain) {
	for command := lttngagent.CommandList; command < commandCount; command++ {
		for r := range resultCount {
			if n := m.env.counts.commands[domain][command][r].Load(); n > 0 {
				m.builder.RecordLttngAgentCommandsDataPoint(now, n, domainAttribute(domain), commandAttribute(command), r.attribute())
			}
		}
	}
}

func domainAttribute(domain lttngagent.Domain) metadata.AttributeLttngAgentDomain {
	return metadata.MapAttributeLttngAgentDomain[domain.String()]
}

var commandAttributes = [commandCount]metadata.AttributeLttngAgentCommand{
	lttngagent.CommandList:             metadata.AttributeLttngAgentCommandList,
	lttngagent.CommandEnable:           metadata.AttributeLttngAgentCommandEnable,
	lttngagent.CommandDisable:          metadata.AttributeLttngAgentCommandDisable,
	lttngagent.CommandRegistrationDone: metadata.AttributeLttngAgentCommandRegistrationDone,
	lttngagent.CommandEnableContext:    metadata.AttributeLttngAgentCommandEnableContext,
	lttngagent.CommandDisableContext:   metadata.AttributeLttngAgentCommandDisableContext,
}

func commandAttribute(command lttngagent.CommandType) metadata.AttributeLttngAgentCommand {
	return commandAttributes[command]
}

var resultAttributes = [resultCount]metadata.AttributeLttngAgentResult{
	resultSuccess:     metadata.AttributeLttngAgentResultSuccess,
	resultInvalid:     metadata.AttributeLttngAgentResultInvalidCommand,
	resultUnknownName: metadata.AttributeLttngAgentResultUnknownName,
	resultOtherCode:   metadata.AttributeLttngAgentResultOtherCode,
	resultUnsupported: metadata.AttributeLttngAgentResultUnsupported,
	resultNoAnswer:    metadata.AttributeLttngAgentResultNoAnswer,
	resultTooLarge:    metadata.AttributeLttngAgentResultTooLarge,
}

func (r result) attribute() metadata.AttributeLttngAgentResult { return resultAttributes[r] }
