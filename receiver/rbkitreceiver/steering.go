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
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/process"
)

// commands are the commands that the extensions offer. A dump and a collection of all
// garbage stop the program, for a time that grows with its objects. The memory profile and
// the dump of the released gem crash a program on a current Ruby.
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

// controlledServer is a configured server as extensions control it.
type controlledServer struct {
	*server
	id string
	// serving ends when the shutdown begins.
	serving context.Context
}

// ID is always the same of a server of a receiver.
func (s *controlledServer) ID() string { return s.id }

// Snapshot returns the state of the server and its process.
func (s *controlledServer) Snapshot() agentcontrol.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := agentcontrol.Snapshot{
		Tracer: metadata.Type.String(), Receiver: s.env.ID, Service: s.config.ServiceName, Address: s.config.Publish,
		State: s.stateText(), LastSeen: s.lastHeard,
	}
	if now.Service == "" {
		now.Service = s.env.config.ServiceName
	}
	if s.control != nil {
		now.Commands = commands
	}
	if h := s.lastReply; h != nil {
		now.Process = agentcontrol.Process{PID: h.PID, Name: names.ValidString(h.ProcessName)}
	}
	if p := s.process; p != nil {
		now.Since = p.Origin.Begun
		now.Service = agentcontrol.TextOf(p.Origin.Resource.Attributes(), origin.AttributeServiceName)
		now.Counters = []agentcontrol.Counter{
			{Name: "messages", Unit: "{message}", Value: p.Messages},
			{Name: "bytes", Unit: "By", Value: p.Bytes},
			{Name: "events", Unit: "{event}", Value: p.Events},
			{Name: "lost messages", Unit: "{message}", Value: p.Lost},
		}
	}
	return now
}

// stateText returns the state of the server in words. The lock is held.
func (s *controlledServer) stateText() string {
	if !s.connected {
		return "disconnected"
	}
	word := "connected"
	if s.lastReply != nil && s.lastReply.ObjectTraceEnabled {
		word += ", memory profile"
	}
	if s.lastReply != nil && s.lastReply.CPUProfiling {
		word += ", CPU profile"
	}
	return word
}

// Told delivers a log record of a command. Its origin is the process, or the configured
// server if none was reached.
func (s *controlledServer) Told(r agentcontrol.Record) {
	s.mu.Lock()
	p := s.process
	s.mu.Unlock()
	var of *origin.Origin
	if p != nil {
		of = p.Origin
	} else {
		origins := originsOf(s.env.config, s.config, "")
		of = origin.New(&origins, origin.Identity{}, s.env.Now(), 0)
	}
	s.env.log(of, agentcontrol.EventName, r.Body(), r.Severity(), 0, func(m pcommon.Map) {
		for _, a := range r.Attributes() {
			m.PutStr(a.Key, a.Value)
		}
	})
}

// Do sends a command. Its effect outlives a restart of the server, until the shutdown of
// the receiver.
func (s *controlledServer) Do(ctx context.Context, order agentcontrol.Order) (agentcontrol.Answer, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(s.serving, func() { end(process.ErrShutdown) })()
	c := s.control
	if err := c.stateLock.lock(ctx); err != nil {
		reason := agentcontrol.NoAnswer
		if s.serving.Err() != nil {
			reason = agentcontrol.Lost
		}
		return agentcontrol.Answer{}, agentcontrol.Errorf(reason, "other commands kept the server busy, so the command was not sent: %w", err)
	}
	defer c.stateLock.unlock()
	if s.serving.Err() != nil {
		return agentcontrol.Answer{}, agentcontrol.Errorf(agentcontrol.Lost, "the receiver is disconnecting from the server: %w", process.ErrShutdown)
	}
	return s.carryOut(ctx, rbkit.Command(order.Command))
}

// carryOut sends a command and compares the states before and after it. The server accepts
// every command, so only its state shows the result; and profiles that others switched on
// are not the receiver's.
func (s *controlledServer) carryOut(ctx context.Context, command rbkit.Command) (agentcontrol.Answer, error) {
	c := s.control
	h, err := s.askState(ctx)
	if err != nil {
		return agentcontrol.Answer{}, err
	}
	if command == rbkit.Handshake {
		return agentcontrol.Answer{Message: "the server answers", Details: detailsOf(&h)}, nil
	}
	// Said before: the receiver would else switch it back in between.
	takeBack := c.wanted.set(command)
	if is, switches := isInState(command, &h); is && switches {
		return agentcontrol.Answer{Message: "that was so already", Details: detailsOf(&h)}, nil
	}
	if h, err = s.send(ctx, command); err != nil {
		takeBack()
		return agentcontrol.Answer{}, err
	}
	return agentcontrol.Answer{Message: "the server has done it", Details: detailsOf(&h)}, nil
}

// send sends a command, and returns the state of the server after it.
func (s *controlledServer) send(ctx context.Context, command rbkit.Command) (rbkit.HandshakeReply, error) {
	s.control.switchedOn.noteCommand(command)
	if err := s.control.send(ctx, command); err != nil {
		return rbkit.HandshakeReply{}, s.errorFor(ctx, err)
	}
	h, err := s.askState(ctx)
	if err != nil {
		return h, err
	}
	if is, _ := isInState(command, &h); !is {
		return h, agentcontrol.Errorf(agentcontrol.Refused, "the server accepted %s, but its state has not changed", command)
	}
	return h, nil
}

// askState asks the server for its state, and remembers it.
func (s *controlledServer) askState(ctx context.Context) (rbkit.HandshakeReply, error) {
	h, err := s.control.askState(ctx)
	if err != nil {
		return h, s.errorFor(ctx, err)
	}
	s.setState(&h)
	s.control.switchedOn.noteState(h)
	return h, nil
}

// errorFor returns the error of a command that got no answer.
func (s *controlledServer) errorFor(ctx context.Context, err error) error {
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

// isInState reports whether a server is in the state that a command leads to. switches says
// whether the command changes the state at all.
func isInState(command rbkit.Command, h *rbkit.HandshakeReply) (is, switches bool) {
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

// detailsOf returns the state of a server as details of an answer.
func detailsOf(h *rbkit.HandshakeReply) []agentcontrol.Detail {
	onOff := map[bool]string{true: "on", false: "off"}
	return []agentcontrol.Detail{
		{Name: "process", Value: names.ValidString(h.ProcessName)},
		{Name: "pid", Value: strconv.FormatUint(h.PID, 10)},
		{Name: "version", Value: names.ValidString(h.ServerVersion)},
		{Name: "dialect", Value: h.Dialect.String()},
		{Name: "memory profile", Value: onOff[h.ObjectTraceEnabled]},
		{Name: "CPU profile", Value: onOff[h.CPUProfiling]},
		{Name: "clock", Value: names.ValidString(h.Clock)},
	}
}
