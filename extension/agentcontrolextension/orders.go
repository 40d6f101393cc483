// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/callbraid/callbraid/internal/agentcontrol"
)

// wish is an order of a client, as it was written.
type wish struct {
	command   string
	arguments map[string]string
	by        string
}

// maxWritten bounds the part of a wish in records and log lines, in bytes.
const maxWritten = 1024

// written returns the arguments as text.
func (w *wish) written() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(w.arguments)) {
		if w.arguments[name] != "" {
			words = append(words, name+"="+w.arguments[name])
		}
	}
	return clip(strings.Join(words, " "), maxWritten)
}

// carryOut carries out an order of a client. It counts and logs the result, and reports it to the
// agent's receiver. The error is an *agentcontrol.Error.
func (x *agentControl) carryOut(ctx context.Context, e *entry, w wish) (agentcontrol.Answer, time.Duration, error) {
	begun := time.Now()
	ctx, end := context.WithTimeoutCause(ctx, x.config.CommandTimeout,
		agentcontrol.Errorf(agentcontrol.NoAnswer, "command_timeout (%v) is over", x.config.CommandTimeout))
	defer end()
	name, disruption := commandUnknown, ""
	command, err := agentcontrol.Find(e.agent.Snapshot().Commands, w.command)
	var arguments agentcontrol.Arguments
	if err == nil {
		name = command.Name
		arguments, err = command.Parse(w.arguments)
	}
	var answer agentcontrol.Answer
	if err == nil {
		disruption = command.Disruption(arguments)
		answer, err = x.carryOutIfAllowed(ctx, e, agentcontrol.Order{Command: name, Arguments: arguments, By: w.by}, disruption)
	}
	took := time.Since(begun)
	record := agentcontrol.Record{
		Agent: e.agent.ID(), Order: agentcontrol.Order{Command: clip(w.command, maxWritten), By: w.by},
		Written: w.written(), Err: err, Message: answer.Message, Took: took,
	}
	x.telemetry.command(e.tracer, name, record.Outcome())
	x.log(record, disruption != "")
	e.agent.SendRecord(record)
	return answer, took, err
}

// carryOutIfAllowed sends an order to the agent, if it is carryOutIfAllowed, when its turn has come.
func (x *agentControl) carryOutIfAllowed(ctx context.Context, e *entry, o agentcontrol.Order, disruption string) (agentcontrol.Answer, error) {
	if disruption != "" && !x.config.AllowDisruptive {
		return agentcontrol.Answer{}, agentcontrol.Errorf(agentcontrol.NotAllowed,
			"%s can stop or pause the traced program: set allow_disruptive of the extension agent_control to true to allow it", disruption)
	}
	if err := e.turns.begin(ctx, x.queue, e.gone); err != nil {
		return agentcontrol.Answer{}, err
	}
	defer e.turns.end()
	return e.agent.Do(ctx, o)
}
