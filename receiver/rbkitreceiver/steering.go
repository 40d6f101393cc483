// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"context"
	"errors"
	"os"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/metadata"
)

// commands are what a server can be told. A dump and a collection hold the program up for as
// long as it has objects: the collection is a whole one, of all that live, and the program
// makes most of its own of the young ones alone. The memory profile and the dump of the released
// gem end a program on a Ruby of today.
var commands = []agentcontrol.Command{
	{Name: string(rbkit.Handshake), Summary: "Ask the server for its process and its state."},
	{Name: string(rbkit.StartMemoryProfile), Disruptive: true, Summary: "Report each object that is created and destroyed. This slows the program down. The released gem crashes a program on Ruby 3.1."},
	{Name: string(rbkit.StopMemoryProfile), Summary: "Stop reporting objects."},
	{Name: string(rbkit.TriggerGC), Disruptive: true, Summary: "Collect all garbage now. The program stops meanwhile."},
	{Name: string(rbkit.ObjectSpaceSnapshot), Disruptive: true, Summary: "Dump all objects now. The program stops meanwhile. The released gem crashes a program on Ruby 3.1."},
	{Name: string(rbkit.UseCPUTime), Summary: "Sample by processor time after the next start of CPU profiling."},
	{Name: string(rbkit.UseWallTime), Summary: "Sample by wall time after the next start of CPU profiling."},
	{Name: string(rbkit.StartCPUProfiling), Summary: "Start sampling stacks."},
	{Name: string(rbkit.StopCPUProfiling), Summary: "Stop sampling stacks."},
}

// steered is a server as the extension agent_control has it: one that is configured,
// whatever process is there.
type steered struct {
	*server
	id string
	// serving ends when the shutdown begins.
	serving context.Context
}

// ID is always the same of a server of a receiver.
func (s *steered) ID() string { return s.id }

// Snapshot is what is known of the server and its process.
func (s *steered) Snapshot() agentcontrol.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := agentcontrol.Snapshot{
		Tracer: metadata.Type.String(), Receiver: s.env.ID, Service: s.config.ServiceName, Address: s.config.Publish,
		State: s.word(), LastSeen: s.heard,
	}
	if now.Service == "" {
		now.Service = s.env.config.ServiceName
	}
	if s.control != nil {
		now.Commands = commands
	}
	if h := s.said; h != nil {
		now.Process = agentcontrol.Process{PID: h.PID, Name: text(h.ProcessName)}
	}
	if p := s.process; p != nil {
		now.Since = p.origin.begun
		now.Service = agentcontrol.TextOf(p.origin.resource.Attributes(), attributeServiceName)
		now.Counters = []agentcontrol.Counter{
			{Name: "messages", Unit: "{message}", Value: p.messages},
			{Name: "bytes", Unit: "By", Value: p.bytes},
			{Name: "events", Unit: "{event}", Value: p.events},
			{Name: "lost messages", Unit: "{message}", Value: p.lost},
		}
	}
	return now
}

// word is what the server is doing. The lock is held.
func (s *steered) word() string {
	if !s.connected {
		return "disconnected"
	}
	word := "connected"
	if s.said != nil && s.said.ObjectTraceEnabled {
		word += ", memory profile"
	}
	if s.said != nil && s.said.CPUProfiling {
		word += ", CPU profile"
	}
	return word
}

// Told hands on a log record of an order: of the process, or of what is configured of one that
// was never reached.
func (s *steered) Told(r agentcontrol.Record) {
	s.mu.Lock()
	p := s.process
	s.mu.Unlock()
	var of *origin
	if p != nil {
		of = p.origin
	} else {
		of = newOrigin(s.env.config, s.config, "", nil, nil, s.env.Now(), 0)
	}
	s.env.log(of, agentcontrol.EventName, r.Body(), r.Severity(), 0, func(m pcommon.Map) {
		for _, a := range r.Attributes() {
			m.PutStr(a.Key, a.Value)
		}
	})
}

// Do has the server do something. What was switched stays so when the server is restarted,
// until the receiver is shut down.
func (s *steered) Do(ctx context.Context, order agentcontrol.Order) (agentcontrol.Answer, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(s.serving, func() { end(errShutdown) })()
	c := s.control
	if err := c.steering.take(ctx); err != nil {
		reason := agentcontrol.NoAnswer
		if s.serving.Err() != nil {
			reason = agentcontrol.Lost
		}
		return agentcontrol.Answer{}, agentcontrol.Errorf(reason, "other commands kept the server busy, so the command was not sent: %w", err)
	}
	defer c.steering.give()
	if s.serving.Err() != nil {
		return agentcontrol.Answer{}, agentcontrol.Errorf(agentcontrol.Lost, "the receiver is disconnecting from the server: %w", errShutdown)
	}
	return s.carryOut(ctx, rbkit.Command(order.Command))
}

// carryOut has the server do something, and asks it before and afterwards: what others
// switched on is not ours, and the server says ok to whatever it is told, so only its state
// tells.
func (s *steered) carryOut(ctx context.Context, command rbkit.Command) (agentcontrol.Answer, error) {
	c := s.control
	h, err := s.greet(ctx)
	if err != nil {
		return agentcontrol.Answer{}, err
	}
	if command == rbkit.Handshake {
		return agentcontrol.Answer{Message: "the server answers", Details: details(&h)}, nil
	}
	// Said before: the receiver would else switch it back in between.
	takeBack := c.wanted.say(command)
	if is, switches := isSo(command, &h); is && switches {
		return agentcontrol.Answer{Message: "that was so already", Details: details(&h)}, nil
	}
	if h, err = s.tell(ctx, command); err != nil {
		takeBack()
		return agentcontrol.Answer{}, err
	}
	return agentcontrol.Answer{Message: "the server has done it", Details: details(&h)}, nil
}

// tell tells the server a command, and gives the state that it says it has then.
func (s *steered) tell(ctx context.Context, command rbkit.Command) (rbkit.HandshakeReply, error) {
	s.control.switched.note(command)
	if err := s.control.tell(ctx, command); err != nil {
		return rbkit.HandshakeReply{}, s.failed(ctx, err)
	}
	h, err := s.greet(ctx)
	if err != nil {
		return h, err
	}
	if is, _ := isSo(command, &h); !is {
		return h, agentcontrol.Errorf(agentcontrol.Refused, "the server accepted %s, but its state has not changed", command)
	}
	return h, nil
}

// greet asks the server for its state, and remembers it.
func (s *steered) greet(ctx context.Context) (rbkit.HandshakeReply, error) {
	h, err := s.control.greet(ctx)
	if err != nil {
		return h, s.failed(ctx, err)
	}
	s.says(&h)
	s.control.switched.seen(h)
	return h, nil
}

// failed is why a server could not be told, or asked.
func (s *steered) failed(ctx context.Context, err error) error {
	switch {
	case s.serving.Err() != nil:
		return agentcontrol.Errorf(agentcontrol.Lost, "the receiver is disconnecting from the server: %w", err)
	case ctx.Err() != nil:
		return agentcontrol.Errorf(agentcontrol.NoAnswer, "the server has not answered: %w", context.Cause(ctx))
	case errors.Is(err, zmtp.ErrTimeout), errors.Is(err, os.ErrDeadlineExceeded):
		return agentcontrol.Errorf(agentcontrol.NoAnswer, "the server has not answered: %w", err)
	default:
		return agentcontrol.Errorf(agentcontrol.Lost, "the server doesn't answer at %s: %w", s.config.Request, err)
	}
}

// isSo reports whether the state of a server is what a command makes it, and whether the
// command is about that state.
func isSo(command rbkit.Command, h *rbkit.HandshakeReply) (is, switches bool) {
	switch command {
	case rbkit.StartMemoryProfile:
		return h.ObjectTraceEnabled, true
	case rbkit.StopMemoryProfile:
		return !h.ObjectTraceEnabled, true
	case rbkit.StartCPUProfiling:
		return h.CPUProfiling, true
	case rbkit.StopCPUProfiling:
		return !h.CPUProfiling, true
	default:
		return true, false
	}
}

// details are the state of a server.
func details(h *rbkit.HandshakeReply) []agentcontrol.Detail {
	onOff := map[bool]string{true: "on", false: "off"}
	return []agentcontrol.Detail{
		{Name: "process", Value: text(h.ProcessName)},
		{Name: "pid", Value: strconv.FormatUint(h.PID, 10)},
		{Name: "version", Value: text(h.ServerVersion)},
		{Name: "dialect", Value: h.Dialect.String()},
		{Name: "memory profile", Value: onOff[h.ObjectTraceEnabled]},
		{Name: "CPU profile", Value: onOff[h.CPUProfiling]},
		{Name: "clock", Value: text(h.Clock)},
	}
}
