// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"os"
	"strconv"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/process"
)

// Do sends a command. Its effect lasts across restarts of the server, until the shutdown of the
// receiver.
func (s *Server) Do(ctx context.Context, command rbkit.Command) (agentcontrol.Answer, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(s.Run.Serving, func() { end(process.ErrShutdown) })()
	c := s.control
	if err := c.stateLock.lock(ctx); err != nil {
		reason := agentcontrol.NoAnswer
		if s.Run.Serving.Err() != nil {
			reason = agentcontrol.Lost
		}
		return agentcontrol.Answer{}, agentcontrol.Errorf(reason, "other commands kept the server busy, so the command was not sent: %w", err)
	}
	defer c.stateLock.unlock()
	if s.Run.Serving.Err() != nil {
		return agentcontrol.Answer{}, agentcontrol.Errorf(agentcontrol.Lost, "the receiver is disconnecting from the server: %w", process.ErrShutdown)
	}
	return s.carryOut(ctx, command)
}

// carryOut sends a command and compares the states before and after it. The server accepts every
// command, so only its state shows the result. Profiles that others switched on stay theirs.
func (s *Server) carryOut(ctx context.Context, command rbkit.Command) (agentcontrol.Answer, error) {
	c := s.control
	h, err := s.askState(ctx)
	if err != nil {
		return agentcontrol.Answer{}, err
	}
	if command == rbkit.Handshake {
		return agentcontrol.Answer{Message: "the server answers", Details: detailsOf(&h)}, nil
	}
	// The wanted state changes first, because a correction in between would undo the command.
	takeBack := c.wanted.applyCommand(command)
	is, switches := isInState(command, &h)
	if is && switches {
		return agentcontrol.Answer{Message: "no change: the server was already in this state", Details: detailsOf(&h)}, nil
	}
	if h, err = s.sendAndCheck(ctx, command); err != nil {
		takeBack()
		return agentcontrol.Answer{}, err
	}
	message := "the server accepted the command" // its state cannot show more
	if switches {
		message = "the server carried out the command"
	}
	return agentcontrol.Answer{Message: message, Details: detailsOf(&h)}, nil
}

// sendAndCheck sends a command, and returns the state of the server after it.
func (s *Server) sendAndCheck(ctx context.Context, command rbkit.Command) (rbkit.HandshakeReply, error) {
	s.control.switchedOn.noteCommand(command)
	if err := s.control.sendCommand(ctx, command); err != nil {
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

// askState asks the server for its state, and notes it.
func (s *Server) askState(ctx context.Context) (rbkit.HandshakeReply, error) {
	h, err := s.control.askState(ctx)
	if err != nil {
		return h, s.errorFor(ctx, err)
	}
	s.Lives.SetReply(h)
	s.control.switchedOn.noteState(h)
	return h, nil
}

// errorFor returns the error of a command without an answer.
func (s *Server) errorFor(ctx context.Context, err error) error {
	switch {
	case s.Run.Serving.Err() != nil:
		return agentcontrol.Errorf(agentcontrol.Lost, "the receiver is disconnecting from the server: %w", err)
	case ctx.Err() != nil:
		return agentcontrol.Errorf(agentcontrol.NoAnswer, "the server has not answered: %w", context.Cause(ctx))
	case errors.Is(err, zmtp.ErrTimeout), errors.Is(err, os.ErrDeadlineExceeded):
		return agentcontrol.Errorf(agentcontrol.NoAnswer, "the server has not answered: %w", err)
	default:
		return agentcontrol.Errorf(agentcontrol.Lost, "the server doesn't answer at %s: %w", s.Request, err)
	}
}

// isInState reports whether a server is in the state after a command. switches is false if the
// command changes no state.
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
