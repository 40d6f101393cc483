// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrogagent"
	"github.com/callbraid/callbraid/internal/bytefrogagent/load"
	"github.com/callbraid/callbraid/test/testbed"
)

// sent is what programs of one service did.
type sent struct {
	// Lives are programs that ran, events what they wrote to their connections, and calls
	// those that can be told from what was sent: 0 where programs are killed.
	lives, events, calls, truncated, hung atomic.Int64
}

// rate is how many events a second a program makes: what one core does beside everything
// else that runs here.
const rate = 1_000

// play runs one program traced by Bytefrog after the other until ctx ends. Where
// killedAfter is above 0 each is killed within that time.
func (s *sent) play(ctx context.Context, t testing.TB, endpoint string, seed uint64, killedAfter time.Duration) {
	random := rand.New(rand.NewPCG(seed, 0))
	for ctx.Err() == nil {
		program, err := load.New(load.Options{
			Threads: 1 + random.IntN(8), Rate: rate, Events: uint64(rate) * (5 + random.Uint64N(10)),
			Exceptions: 0.02, Loss: 0.001, Suspends: 2, Seed: random.Uint64(), Record: killedAfter == 0,
		})
		if err != nil {
			t.Error(err)
			return
		}
		life, kill := context.WithCancel(context.WithoutCancel(ctx))
		if killedAfter > 0 {
			time.AfterFunc(time.Duration(random.Int64N(int64(killedAfter))), kill)
		}
		a := bytefrogagent.New(bytefrogagent.Options{Endpoint: endpoint, ConnectTimeout: testbed.Patience}, program)
		stop := context.AfterFunc(ctx, a.Stop)
		result := a.Run(life)
		stop()
		kill()
		s.count(t, result, program, killedAfter > 0)
	}
}

// count adds one program that has ended.
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

// noise is connections that say nothing sensible, to one address after the other.
func noise(ctx context.Context, addresses []string, seed uint64) (made int64) {
	random := rand.New(rand.NewPCG(seed, 1))
	var open sync.WaitGroup
	defer open.Wait()
	var dialer net.Dialer
	for ctx.Err() == nil {
		connection, err := dialer.DialContext(ctx, "tcp", addresses[random.IntN(len(addresses))])
		if err != nil {
			continue
		}
		made++
		open.Go(func() { babble(ctx, connection, random.Uint64()) })
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	return made
}

// babble writes some garbage, all at once or a byte in a while, and leaves.
func babble(ctx context.Context, connection net.Conn, seed uint64) {
	defer connection.Close()
	random := rand.New(rand.NewPCG(seed, 2))
	garbage := make([]byte, random.IntN(1000))
	for i := range garbage {
		garbage[i] = byte(random.Uint32())
	}
	piece, pause := len(garbage), time.Duration(0)
	if random.IntN(2) == 0 {
		piece, pause = 1, 50*time.Millisecond
	}
	for len(garbage) > 0 && ctx.Err() == nil {
		n := min(piece, len(garbage))
		if _, err := connection.Write(garbage[:n]); err != nil {
			return
		}
		garbage = garbage[n:]
		time.Sleep(pause)
	}
}

// playAgain has agentsim play something again and again until ctx ends, and gives how
// often it came to its end.
func playAgain(ctx context.Context, t testing.TB, arguments func(turn int64) []string) (ends int64) {
	for ctx.Err() == nil {
		command := exec.CommandContext(ctx, testbed.AgentSim(t), arguments(ends)...)
		command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
		command.WaitDelay = testbed.Patience
		output, err := command.CombinedOutput()
		switch {
		case err == nil && ctx.Err() == nil:
			ends++
		case ctx.Err() == nil:
			t.Errorf("%s: %v\n%s", command, err, output)
			return ends
		}
	}
	return ends
}
