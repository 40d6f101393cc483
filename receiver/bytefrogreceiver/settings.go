// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"fmt"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/session"
)

// sessionSettings returns the settings of sessions.
func (c *Config) sessionSettings() session.Settings {
	return session.Settings{
		Agent: c.Agent.message(), TextKey: attributeSignature, StartSuspended: c.Start == StartSuspended,
		Silence:       time.Duration(c.MissedHeartbeats) * c.Agent.HeartbeatInterval,
		SuspendAtOnce: c.OnOverload == OverloadSuspend, MaxBlock: c.MaxBlock,
		Batches: &c.BatchesConfig, Needs: c.needs(), NameWait: c.NameWait,
		EndTimeout: c.EndTimeout, ShutdownTimeout: c.ShutdownTimeout, WarnEventsPerSecond: c.WarnEventsPerSecond,
		MaxMessageSize: c.Limits.MaxMessageSize, MaxConnectionLead: c.Limits.MaxConnectionLead,
	}
}

// message returns the configuration of agents, without the ID of a run.
func (c *AgentConfig) message() bytefrog.AgentConfiguration {
	return bytefrog.AgentConfiguration{
		HeartbeatInterval:  c.HeartbeatInterval,
		Exclusions:         c.Exclusions,
		Inclusions:         c.Inclusions,
		BufferMemoryBudget: int32(c.BufferMemory),
		QueueRetryCount:    int32(c.QueueRetryCount),
		DataConnections:    int32(c.DataConnections),
	}
}

// eventBytes is the approximate size of an event in the agent's buffers.
const eventBytes = 16

// needs returns the requirements on the settings of stack_pairing. Data that is sent again, or that is
// behind, takes some time on its way, so there "well below" is at most half.
func (c *Config) needs() callevent.Needs {
	const maxWait, maxEvents, idleTimeout = "reorder.max_wait", "reorder.max_events", "idle_timeout"
	of := func(setting string, value any) string { return fmt.Sprint(setting, ": ", value) }
	return callevent.Needs{
		{Of: maxWait, Because: of("name_wait", c.NameWait), MoreThan: int64(c.NameWait)},
		{Of: maxWait, Because: of("retry.max_interval", c.Retry.MaxInterval), MoreThan: 2*int64(c.Retry.MaxInterval) - 1},
		{Of: maxEvents, Because: of("limits.max_connection_lead", c.Limits.MaxConnectionLead), MoreThan: int64(c.Limits.MaxConnectionLead)},
		{Of: maxEvents, Because: of("agent.buffer_memory", c.Agent.BufferMemory), MoreThan: int64(c.Agent.BufferMemory / eventBytes)},
		{Of: idleTimeout, Because: of("keepalive_interval", c.KeepaliveInterval), MoreThan: int64(c.KeepaliveInterval)},
	}
}
