// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
)

// Names are Bytefrog agents. Each names methods that are never called, and then stays connected.
type Names struct {
	Endpoint string
	// Agents is the number of simultaneous agents, and Bytes the total length of the names of each.
	Agents int
	Bytes  int64
	// Stay is the time that each agent stays after its names, unless the collector refuses it.
	Stay time.Duration

	started, sent, turnedAway atomic.Int64
}

// apart is the time between the connections of two agents.
const apart = 2 * time.Millisecond

// signatureBytes is the length of each name.
const signatureBytes = 60_000

// Attack runs all agents.
func (n *Names) Attack(ctx context.Context) error {
	text := strings.Repeat("n", signatureBytes)
	together(n.Agents, func(turn int) {
		if !pause(ctx, time.Duration(turn)*apart) {
			return
		}
		agent := bytefrogagent.New(bytefrogagent.Options{Endpoint: n.Endpoint, ConnectTimeout: 10 * time.Second, BufferSize: 1 << 17}, &namesProgram{n, text})
		n.started.Add(1)
		if result := agent.Run(ctx); ctx.Err() == nil && result.Outcome != bytefrogagent.Completed {
			n.turnedAway.Add(1)
		}
	})
	return nil
}

// Sent returns the amount of names.
func (n *Names) Sent() string {
	return fmt.Sprintf("%d agents, %s of names, %d agents refused", n.started.Load(), mib(n.sent.Load()), n.turnedAway.Load())
}

// namesProgram is the program of one agent.
type namesProgram struct {
	*Names
	text string
}

// Run sends the names of methods.
func (p *namesProgram) Run(t *bytefrogagent.Tracer) error {
	for method := uint32(0); int64(method)*signatureBytes < p.Bytes; method++ {
		if t.Proceed() != nil {
			return nil
		}
		b, err := t.Acquire()
		if err != nil {
			return nil
		}
		name := fmt.Sprintf("attack/C%d.", method) + p.text
		b.Data = bytefrog.MapMethod{Method: method, Signature: name + "m;1;()V"}.AppendTo(b.Data)
		p.sent.Add(int64(len(b.Data)))
		t.Send(b)
	}
	for until := time.Now().Add(p.Stay); time.Now().Before(until) && t.Proceed() == nil; {
		t.Sleep(100 * time.Millisecond)
	}
	return nil
}
