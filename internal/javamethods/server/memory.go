// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/receiverkit/servermemory"
)

// The memory of a server has an account in the memory budget of the process, with limits.max_server_memory as its own
// limit. If either limit is reached, the receiver disconnects the server:
//
//   1. It closes the connections: no more data arrive, and commands end.
//   2. It frees the state of the process. It keeps the classes with instrumentation, because resets have to
//      remove it.
//   3. It connects again after a pause. Sums begin at zero.

// watchMemory closes the server's connections on a shortage of memory, and passes the shortage to the server's
// goroutine.
func (s *Server) watchMemory(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case shortage := <-s.Memory.Over():
			if !s.Memory.IsCurrent(shortage) {
				continue
			}
			s.Memory.HangUp()
			select {
			case <-s.full: // it may belong to an account that was closed since
			default:
			}
			s.full <- shortage // only this goroutine fills it
		}
	}
}

// freeIfFull frees the memory of the server if there is a shortage.
func (s *Server) freeIfFull() {
	select {
	case short := <-s.full:
		s.free(short)
	default:
	}
}

// free frees the state of the process while no command runs.
func (s *Server) free(short servermemory.Shortage) {
	if !s.Memory.IsCurrent(short) {
		return // the memory has been freed since
	}
	s.mu.Lock()
	if s.work != nil {
		if s.unreported {
			s.Ended(s.output.state(true))
		}
		s.output = s.newOutput(s.work.Who())
		s.work.Renew(s.output.Process, s.output)
	}
	s.mu.Unlock()
	s.Memory.Renew()
	reason := ReasonBudget
	if full := (*budget.Error)(nil); errors.As(short.Why, &full) && full.Setting == servermemory.Setting {
		reason = ReasonServer
	}
	s.Counters.Disconnected(reason)
	if since, due := s.disconnects.Count(s.now()); due {
		s.Logger.Warn("Server disconnected for a while: its data takes too much memory. Its sums begin at zero",
			zap.Error(short.Why), zap.Int("times_since_last_line", since))
	}
}
