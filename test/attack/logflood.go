// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
)

// LogFlood are Bytefrog agents and connections that make a collector log much: errors of 64 KiB,
// and long texts that no agent sends.
type LogFlood struct {
	Endpoint string
	// Peers is the number of simultaneous peers of each kind. They connect again until ctx ends.
	Peers int
	// Pause is the time between two connections of a peer.
	Pause time.Duration

	tally
}

// Attack runs all peers until ctx ends.
func (n *LogFlood) Attack(ctx context.Context) error {
	text := strings.Repeat("E", bytefrog.MaxString)
	var agents sync.WaitGroup
	defer agents.Wait()
	agents.Go(func() { n.agents(ctx, text) })
	n.repeat(ctx, n.Endpoint, n.Peers, n.Pause, func(connection net.Conn) {
		n.messages.Add(1)
		_ = connection.SetDeadline(time.Now().Add(time.Second)) // Write fails if the connection is closed
		written, _ := connection.Write([]byte(text))            // the collector may refuse it immediately
		n.bytes.Add(int64(written))
	})
	return nil
}

// agents runs the agents that report errors.
func (n *LogFlood) agents(ctx context.Context, text string) {
	together(n.Peers, func(int) {
		for ctx.Err() == nil {
			n.connections.Add(1)
			agent := bytefrogagent.New(bytefrogagent.Options{Endpoint: n.Endpoint, ConnectTimeout: time.Second, StartTimeout: 10 * time.Second}, &errorProgram{n, text})
			agent.Run(ctx)
			pause(ctx, n.Pause)
		}
	})
}

// Sent returns the number of connections and errors.
func (n *LogFlood) Sent() string {
	return fmt.Sprintf("%d connections, %d texts, %s", n.connections.Load(), n.messages.Load(), mib(n.bytes.Load()))
}

// errorProgram reports errors, and classes that could not be transformed.
type errorProgram struct {
	*LogFlood
	text string
}

// Run reports errors until the collector disconnects the agent.
func (p *errorProgram) Run(t *bytefrogagent.Tracer) error {
	for i := range 20 {
		if t.Proceed() != nil {
			return nil
		}
		t.Report(bytefrog.ClassReport{Result: bytefrog.TypeClassTransformFailed, Class: fmt.Sprint(i) + p.text})
		p.messages.Add(1)
		p.bytes.Add(int64(len(p.text)))
	}
	t.Report(bytefrog.ErrorMessage{Text: p.text})
	p.messages.Add(1)
	p.bytes.Add(int64(len(p.text)))
	return nil
}
