// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/receiverkit/eventswitch"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/session"
)

// openSession opens the session of an agent. At limits.max_runs it first ends the run of the agent that
// has proved least, and waits a short time for its end: the program of the new agent waits meanwhile.
func (r *bytefrogReceiver) openSession(version uint8, control *connreader.Reader) (*session.Session, error) {
	patience := time.After(r.env.timing.giveWay)
	for {
		opened, err := r.env.registry.open(func(id uint8) (*session.Session, error) { return r.env.newSession(id, version, control) })
		var limit *limitError
		if !errors.As(err, &limit) {
			return opened, err
		}
		least := r.env.registry.lookup(leastProven(r.env.registry.states(), r.env.Now().Add(-r.env.timing.unproven)))
		if least == nil {
			return nil, err
		}
		r.env.telemetry.GaveWay()
		least.Leave(session.GaveWay(limit))
		select {
		case <-least.Over():
		case <-patience:
			return nil, err
		case <-r.env.run.Serving.Done():
			return nil, errClosed
		}
	}
}

// newSession returns the session of an agent with an ID.
func (e *environment) newSession(id, version uint8, control *connreader.Reader) (*session.Session, error) {
	stream, err := e.newStreamID()
	if err != nil {
		return nil, err
	}
	resource := newResource(e.config, stream)
	logs := runLogs{sink: e.logs, off: eventswitch.Off(e.config.Events), origin: &origin{run: id, resource: resource}, now: e.Now}
	var created *session.Session
	created = session.New(e.sessions, session.Options{
		ID: id, Stream: stream, Resource: resource, Version: version, Control: control,
		Memory: newRunMemory(e.run.Memory, e.config.Limits.MaxRunMemory), Records: logs,
		Started: func() func() { return e.run.Agents.Register(newSteered(created, e.ID, logs)) },
		Linger: func(data []net.Conn, control net.Conn, answered bool) {
			e.registry.linger(id)
			e.lingering.begin(lingerer{data: data, control: control, answered: answered, gone: func() { e.registry.gone(id) }})
		},
		Ended: func(last session.State) {
			e.telemetry.Runs(-1)
			e.metrics.Ended(last)
			e.registry.close(id)
		},
	})
	e.telemetry.Runs(1)
	return created, nil
}

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
