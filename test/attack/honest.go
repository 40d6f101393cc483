// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/load"
)

// honest has programs that Bytefrog traces and that attack nothing.
type honest struct {
	endpoint string

	mu      sync.Mutex
	calls   int64 // that they made, all of which a backend has to get
	started int   // programs
	traced  int   // of them: those that were traced to their end
	slowest time.Duration
	harmed  []string // what became of the others
}

// life runs a program until it has made a number of events; 0: until ctx ends.
func (h *honest) life(ctx context.Context, events uint64, rate float64, patience time.Duration) bool {
	program, err := load.New(load.Options{Threads: 4, Rate: rate, Events: events, Exceptions: 0.02, Seed: uint64(time.Now().UnixNano()), Record: true})
	if err != nil {
		panic(err) // the options are constants
	}
	agent := bytefrogagent.New(bytefrogagent.Options{
		Endpoint: h.endpoint, ConnectTimeout: patience, StartTimeout: patience, Settle: time.Minute,
	}, program)
	defer context.AfterFunc(ctx, agent.Stop)()
	began := time.Now()
	// The end of ctx ends programs in order. A collector that prevents that hangs them.
	life, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(patience, kill) })()
	result := agent.Run(life)
	took := time.Since(began)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.started++
	h.calls += int64(len(program.Truth().Calls))
	if events > 0 {
		h.slowest = max(h.slowest, took)
	}
	// A program that runs all the time is ended early, and in order.
	if result.Outcome != bytefrogagent.Completed && !(events == 0 && result.Outcome == bytefrogagent.Untraced && result.Reason == endedEarly) {
		h.harmed = append(h.harmed, fmt.Sprintf("%v after %v: %s: %v", result.Outcome, took.Round(time.Millisecond), result.Reason, result.Err))
		return false
	}
	h.traced++
	return true
}

// endedEarly is the reason for the end of a stopped agent.
const endedEarly = "the program was ended early by its user"

// sums returns the numbers of now.
func (h *honest) sums() (calls int64, started, traced int, slowest time.Duration, harmed []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls, h.started, h.traced, h.slowest, append([]string(nil), h.harmed...)
}
