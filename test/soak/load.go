// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/load"
	"github.com/callbraid/callbraid/internal/testkit"
)

// sent counts the actions of the programs of one service.
type sent struct {
	// lives is the number of programs that ran, and events that of the events that they wrote to
	// their connections. calls is the number of calls that these events make; 0 for programs that
	// are killed.
	lives, events, calls, truncated, hung atomic.Int64
}

// baseRate is the number of events a second of a program at single load. One core can do this
// beside everything else.
const baseRate = 1_000

// eventSize is the least number of bytes of an event, and dataConnections the number that the
// receiver configures. Both bound the uncounted events of a killed program.
const (
	eventSize       = 16
	dataConnections = 2
)

// programs are the programs that Bytefrog traces at one address.
type programs struct {
	endpoint string
	rate     float64 // events a second of each
	// killedAfter is the time in which each is killed; 0: it ends by itself.
	killedAfter time.Duration
	// steps is the number of changes to the clock of each.
	steps int
	// functions is the number of different functions of each; 0: the simulator's default.
	functions int
}

// play runs one program after the other until ctx ends.
func (s *sent) play(ctx context.Context, t testing.TB, p programs, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	for ctx.Err() == nil {
		program, err := load.New(load.Options{
			Threads: 1 + random.IntN(8), Rate: p.rate, Events: uint64(p.rate) * (5 + random.Uint64N(10)),
			Exceptions: 0.02, Loss: 0.001, Suspends: 2, ClockSteps: p.steps, Functions: p.functions, Seed: random.Uint64(), Record: p.killedAfter == 0,
		})
		if err != nil {
			t.Error(err)
			return
		}
		life, kill := context.WithCancel(context.WithoutCancel(ctx))
		if p.killedAfter > 0 {
			time.AfterFunc(time.Duration(random.Int64N(int64(p.killedAfter))), kill)
		}
		a := bytefrogagent.New(bytefrogagent.Options{Endpoint: p.endpoint, ConnectTimeout: testkit.Patience}, program)
		stop := context.AfterFunc(ctx, a.Stop)
		result := a.Run(life)
		stop()
		kill()
		s.count(t, result, program, p.killedAfter > 0)
	}
}

// count adds an ended program to the sums.
func (s *sent) count(t testing.TB, result bytefrogagent.Result, program *load.Program, killed bool) {
	s.lives.Add(1)
	s.events.Add(int64(result.Stats.Events))
	if killed {
		return
	}
	if result.Outcome == bytefrogagent.Hung || result.Outcome == bytefrogagent.Died {
		s.hung.Add(1)
		t.Errorf("a program came to harm: %v: %s: %v", result.Outcome, result.Reason, result.Err)
	}
	truth := program.Truth()
	s.calls.Add(int64(len(truth.Calls)))
	for _, call := range truth.Calls {
		if call.Truncated != "" {
			s.truncated.Add(1)
		}
	}
}
