// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/session"
)

// awaitDeaf waits until no agent can connect any more.
func (b *bed) awaitDeaf(address string) {
	b.T.Helper()
	b.Await("the listener to be closed", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
}

// A command before it has its buffers can hang its program.
func TestAnAgentGetsNoCommandBeforeItsFirstDataConnection(t *testing.T) {
	for name, leave := range map[string]func(b *bed) <-chan error{
		"a shutdown": (*bed).shutdownInBackground,
		"given up": func(b *bed) <-chan error {
			b.receiver.env.registry.lookup(1).Leave(session.Unresponsive(time.Second))
			b.awaitRuns(0)
			return b.shutdownInBackground()
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, quickly, func(_ *bed, c *Config) { c.ShutdownTimeout = 200 * time.Millisecond })
			a := connect(b, 1)
			done := leave(b)
			a.control.expectEnd()
			require.NoError(t, <-done)
		})
	}
}

func TestAShutdownAcceptsADataConnectionThatIsOnItsWay(t *testing.T) {
	b := newBed(t, patiently)
	a := connect(b, 1)
	p := dial(t, b.address())
	b.Await("it to be accepted", func() bool { return b.receiver.handshakes.len() == 1 })
	run := b.receiver.env.registry.lookup(1)
	done := b.shutdownInBackground()
	b.Await("the run to be left", func() bool { return run.State().Leaving })
	p.send(bytefrog.DataHello{Run: a.configuration.RunID})
	p.expect(bytefrog.DataHelloReply{})
	a.data = append(a.data, p)
	p.write(append(namesOne(), calls(0, 50)...))
	a.answerSuspend(100)
	assert.Equal(t, "the receiver is shutting down", a.control.expectError())
	a.expectToLinger(b, 2)
	require.NoError(t, <-done)
	s := b.only()
	assert.Len(t, s.events, 100)
	assert.Equal(t, callevent.End(100, callevent.CauseShutdown), s.end(t))
}

func TestAShutdownWaitsNoLongerForAnAgentThatHasEnded(t *testing.T) {
	b := newBed(t, patiently)
	a := connect(b, 1)
	run := b.receiver.env.registry.lookup(1)
	done := b.shutdownInBackground()
	b.Await("the run to be left", func() bool { return run.State().Leaving })
	a.control.send(bytefrog.ErrorMessage{Text: "Connection refused"}, bytefrog.Heartbeat{Mode: bytefrog.ModeShuttingDown})
	require.NoError(t, a.control.conn.(*net.TCPConn).CloseWrite())
	a.control.expectEnd()
	require.NoError(t, <-done)
}

func TestAShutdownLetsTheProgramOfAnAgentRunThatIsNotReady(t *testing.T) {
	b := newBed(t, quickHeart)
	address := b.address()
	preparing, left := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithTimeout(context.Background(), 3*receivertestbed.Patience)
	defer cancel()
	result := runRestless(ctx, b, func(o *bytefrogagent.Options) {
		o.Prepare = func() {
			close(preparing)
			<-left
		}
	})
	<-preparing
	run := b.receiver.env.registry.lookup(1)
	done := b.shutdownInBackground()
	b.Await("the run to be left", func() bool { return run.State().Leaving })
	b.awaitDeaf(address)
	close(left)
	r := <-result
	assert.Equal(t, bytefrogagent.Untraced, r.Outcome, "%s (%v)", r.Reason, r.Err)
	require.NoError(t, <-done)
}
