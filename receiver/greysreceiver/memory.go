// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/receiverkit/servermemory"
)

// What a server has in memory is in an account of the process's memory budget, with
// limits.max_server_memory as its own bound. Where either is reached the server is
// disconnected, in these steps:
//
//  1. Its connections are closed: nothing more is received, and commands end.
//  2. What is known of it is freed: sums by method, classes and methods found. What commands
//     have put into classes stays known, since it has to be taken out.
//  3. It is connected to again after a pause. Sums begin anew.

const (
	bytesOfServer = 64 << 10
	// bytesOfMethod is what the sums of a method take, and bytesOfFound what is remembered of
	// a class or a method, both beside their names, about. bytesOfNesting is what is remembered
	// of whether a method calls itself.
	bytesOfMethod  = 350
	bytesOfFound   = 110
	bytesOfNesting = 250
)

// Why a server is disconnected.
const (
	reasonBudget = "memory_budget"
	reasonServer = "max_server_memory"
)

// watchMemory closes the server's connections when it has to give back its memory, and has
// the goroutine that follows it free what is known of it.
func (s *server) watchMemory(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case shortage := <-s.memory.Over():
			if !s.memory.IsCurrent(shortage) {
				continue
			}
			s.memory.HangUp()
			select {
			case <-s.full: // it may be of an account that was closed since
			default:
			}
			s.full <- shortage // nobody else fills it
		}
	}
}

// freeIfFull frees the memory of the server if it has to.
func (s *server) freeIfFull() {
	select {
	case short := <-s.full:
		s.free(short)
	default:
	}
}

// free ends what is known of the server's process, of which nothing is asked now.
func (s *server) free(short servermemory.Shortage) {
	if !s.memory.IsCurrent(short) {
		return // it has been freed since
	}
	why := short.Why
	s.mu.Lock()
	if old := s.process; old != nil {
		if s.untold {
			s.env.metrics.Ended(s.last())
		}
		s.process = newProcess(s.env, newOrigin(s.env, s.config, s.who, s.env.now()), nil)
		s.process.memory, s.process.logger = s.memory, s.logger
		s.process.tasks, s.process.owed, s.process.layers, s.process.runs = old.tasks, old.owed, old.layers, old.runs
	}
	s.mu.Unlock()
	s.memory.Renew()
	reason := reasonBudget
	if short := (*budget.Error)(nil); errors.As(why, &short) && short.Setting == servermemory.Setting {
		reason = reasonServer
	}
	s.env.telemetry.disconnected(reason)
	if since, say := s.shed.Say(s.env.now()); say {
		s.logger.Warn("The server is disconnected for now: it holds too much memory. What was counted of it begins anew",
			zap.Error(why), zap.Int("times_since_last_line", since))
	}
}

// held counts what is known of the process. The lock is held.
func (p *process) held() int {
	return bytesOfServer + p.calls.bytes + p.nestedBytes + p.inventory.bytes + bytesOfFound*len(p.inventory.entries)
}
