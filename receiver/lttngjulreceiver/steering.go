// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"context"
	"errors"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/session"
)

// Names of commands, and of their arguments.
const (
	orderList         = "list"
	orderEnable       = "enable"
	orderDisable      = "disable"
	argumentLogger    = "logger"
	argumentLevel     = "level"
	argumentLevelType = "level_type"
	argumentFilter    = "filter"
)

// commands are the commands that the extensions offer. The shutdown disables everything
// that they enabled.
var commands = []agentcontrol.Command{
	{Name: orderList, Summary: "List the names of the loggers."},
	{Name: orderEnable, Summary: "LTTng records the records of a logger until disable, or until the collector ends.", Parameters: []agentcontrol.Parameter{
		{Name: argumentLogger, Summary: "Its name, or * for all.", Kind: agentcontrol.Text, Required: true},
		{Name: argumentLevel, Summary: "A level of the logging library, by name or number: this level and more severe ones.", Kind: agentcontrol.Text},
		{Name: argumentLevelType, Summary: "range: the level and more severe; single: the level alone.", Kind: agentcontrol.Text, OneOf: []string{"range", "single", "all"}},
		{Name: argumentFilter, Summary: "A filter expression of LTTng.", Kind: agentcontrol.Text, MaxBytes: 4096},
	}},
	{Name: orderDisable, Summary: "Stop recording the records of a logger. Agents count: a logger that was enabled twice has to be disabled twice.", Parameters: []agentcontrol.Parameter{
		{Name: argumentLogger, Summary: "The name with which it was enabled.", Kind: agentcontrol.Text, Required: true},
	}},
}

// controlledAgent is an agent in the extension agent_control.
type controlledAgent struct {
	*agent
	id string
}

// ID returns the ID of the registration.
func (s *controlledAgent) ID() string { return s.id }

// Snapshot returns the state of the agent. Its origin doesn't change once it is registered.
func (s *controlledAgent) Snapshot() agentcontrol.Snapshot {
	attributes := s.origin.resource.Attributes()
	return agentcontrol.Snapshot{
		Tracer: metadata.Type.String(), Receiver: s.env.ID, Service: agentcontrol.TextOf(attributes, attributeServiceName),
		Address: s.Peer().String(),
		Process: agentcontrol.Process{PID: uint64(s.PID()), Name: agentcontrol.TextOf(attributes, attributeExecutableName)},
		State:   "registered (" + s.Agent().Domain.String() + ")",
		Since:   s.Registered(), LastSeen: s.AnsweredAt(), Commands: commands,
		Counters: []agentcontrol.Counter{{Name: "loggers", Unit: "{logger}", Value: s.Loggers()}},
	}
}

// SendRecord delivers a log record of an order.
func (s *controlledAgent) SendRecord(r agentcontrol.Record) {
	if s.env.logs == nil {
		return
	}
	entry := logEntry{origin: s.origin, event: agentcontrol.EventName, severity: r.Severity(), time: s.env.Now(), body: r.Body()}
	for _, a := range r.Attributes() {
		entry.attributes = append(entry.attributes, text(a.Key, a.Value))
	}
	s.env.logs.Deliver(entry)
}

// Do queues a command and waits for the answer.
func (s *controlledAgent) Do(ctx context.Context, o agentcontrol.Order) (agentcontrol.Answer, error) {
	command, err := s.commandOf(o)
	if err != nil {
		return agentcontrol.Answer{}, agentcontrol.Errorf(agentcontrol.BadArgument, "%w", err)
	}
	answer, err := s.Session.Do(ctx, command)
	switch {
	case errors.Is(err, session.ErrNotSent):
		return agentcontrol.Answer{}, agentcontrol.Errorf(agentcontrol.Lost, "the agent has disconnected, or the receiver is disconnecting from it: %w", err)
	case err != nil:
		return agentcontrol.Answer{}, agentcontrol.Errorf(agentcontrol.NoAnswer, "the agent has not answered: %w", err)
	}
	return answerOf(command, answer)
}

// commandOf returns the command of an order.
func (s *controlledAgent) commandOf(o agentcontrol.Order) (lttngagent.Command, error) {
	switch o.Command {
	case orderEnable:
		rule := EnableRule{
			Domain: s.Agent().Domain.String(), Logger: o.Arguments.Text(argumentLogger),
			LevelType: o.Arguments.Text(argumentLevelType), Filter: o.Arguments.Text(argumentFilter),
		}
		if level := o.Arguments.Text(argumentLevel); level != "" {
			rule.Level = level
		}
		p := plan{}
		if err := p.addEnable(&rule, s.Agent().Dialect); err != nil {
			return nil, err
		}
		return p[s.Agent().Domain][0], nil
	case orderDisable:
		logger, err := lttngagent.ParsePattern(o.Arguments.Text(argumentLogger))
		return lttngagent.Disable{Logger: logger}, err
	default:
		return lttngagent.List{}, nil
	}
}

// answerOf returns the answer to an order.
func answerOf(command lttngagent.Command, a session.Answer) (agentcontrol.Answer, error) {
	switch a.Result {
	case session.Success:
	case session.Unsupported:
		return agentcontrol.Answer{}, agentcontrol.Errorf(agentcontrol.BadArgument, "%w", a.Err)
	case session.TooLarge:
		return agentcontrol.Answer{}, agentcontrol.Errorf(agentcontrol.Refused, "the agent has more loggers than limits.max_loggers or limits.max_list_bytes allow: %w", a.Err)
	case session.NoAnswer:
		reason := agentcontrol.Lost
		if silent := (*session.TimeoutError)(nil); errors.As(a.Err, &silent) && !silent.CutShort {
			reason = agentcontrol.NoAnswer
		}
		return agentcontrol.Answer{}, agentcontrol.Errorf(reason, "%w", a.Err)
	default:
		return agentcontrol.Answer{}, agentcontrol.Errorf(agentcontrol.Refused, "the agent answers: %s", a.Code)
	}
	if _, isList := command.(lttngagent.List); isList {
		return agentcontrol.Answer{Message: "the agent's loggers", Items: a.Loggers}, nil
	}
	return agentcontrol.Answer{Message: "the agent carried out the command"}, nil
}

// announce shows an agent in the extensions until withdraw is called.
func announce(a *agent) (withdraw func()) {
	instance := agentcontrol.TextOf(a.origin.resource.Attributes(), attributeServiceInstanceID)
	id := agentcontrol.NewID(a.env.ID, a.Peer().String(), a.Registered().String(), instance)
	return a.env.Agents.Register(&controlledAgent{agent: a, id: id})
}
