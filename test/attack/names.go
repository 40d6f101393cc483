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

// Names are Bytefrog agents each of which names methods that are never called, and then stays.
type Names struct {
	Endpoint string
	// Agents is the number of simultaneous agents, and Bytes the total length of the names of each.
	Agents int
	Bytes  int64
	// Stay is how long each stays when it has sent its names, unless it is turned away.
	Stay time.Duration

	started, sent, turnedAway atomic.Int64
}

// apart is the time between agents that connect.
const apart = 2 * time.Millisecond

// signatureBytes is how long each name is.
const signatureBytes = 60_000

// Attack has all agents connect, send and stay.
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

// Sent says how much was named.
func (n *Names) Sent() string {
	return fmt.Sprintf("%d agents, %s of names, %d agents refused", n.started.Load(), mib(n.sent.Load()), n.turnedAway.Load())
}

// namesProgram is the program of one agent.
type namesProgram struct {
	*Names
	text string
}

// Run names methods.
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
