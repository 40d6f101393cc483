// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"strconv"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/session"
)

// commands are the commands that operators can send to an agent.
var commands = []agentcontrol.Command{
	{Name: session.Suspend, Summary: "Stop tracing until unsuspend. The program runs on, even if it was paused. The data has a break."},
	{Name: session.Unsuspend, Summary: "Go on tracing after suspend."},
	{Name: session.Pause, Disruptive: true, Summary: "Halt the traced program until unpause. Not while tracing is suspended."},
	{Name: session.Unpause, Summary: "Let the traced program go on after pause."},
	{Name: session.Stop, Disruptive: true, Summary: "End tracing for good. Java's agent lets its program run on; by the protocol's document the program ends."},
}

// steered is an agent that was started, for the extension agent_control.
type steered struct {
	*session.Session
	id, receiver string
	logs         runLogs
}

// newSteered returns the agent of a session.
func newSteered(s *session.Session, receiver string, logs runLogs) *steered {
	return &steered{Session: s, id: agentcontrol.NewID(receiver, s.State().Stream.String()), receiver: receiver, logs: logs}
}

// ID returns the ID of the agent.
func (s *steered) ID() string { return s.id }

// Snapshot returns the state of the agent.
func (s *steered) Snapshot() agentcontrol.Snapshot {
	state := s.State()
	return agentcontrol.Snapshot{
		Tracer: metadata.Type.String(), Receiver: s.receiver, Service: agentcontrol.TextOf(state.Resource.Attributes(), attributeServiceName), Address: state.Peer,
		State: modeAttribute(state.CurrentMode()).String(), Since: state.Opened, LastSeen: state.LastHeard, Commands: commands, Unfit: state.Unfit(),
		Counters: []agentcontrol.Counter{
			{Name: "events", Unit: "{event}", Value: int64(state.Events)},
			{Name: "bytes", Unit: "By", Value: int64(state.Bytes)},
			{Name: "breaks", Unit: "{break}", Value: int64(state.SumOfBreaks())},
			{Name: "data connections", Unit: "{connection}", Value: state.Connections},
			{Name: "send buffers", Unit: "{buffer}", Value: state.SendBuffers},
		},
	}
}

// SendRecord sends a log record of an order to the pipeline.
func (s *steered) SendRecord(r agentcontrol.Record) { s.logs.order(r) }

// Do carries out an order.
func (s *steered) Do(ctx context.Context, order agentcontrol.Order) (agentcontrol.Answer, error) {
	message, err := s.Session.Do(ctx, order.Command)
	if err != nil {
		return agentcontrol.Answer{}, err
	}
	state := s.State()
	return agentcontrol.Answer{Message: message, Details: []agentcontrol.Detail{
		{Name: "state", Value: modeAttribute(state.CurrentMode()).String()},
		{Name: "events", Value: strconv.FormatUint(state.Events, 10)},
	}}, nil
}
