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
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
)

// An agent refused in front of start would take its program with it.
func TestTheProgramOfARefusedAgentContinues(t *testing.T) {
	for name, c := range map[string]struct {
		limit func(c *LimitsConfig)
		text  string
	}{
		"limits.max_runs":        {func(c *LimitsConfig) { c.MaxRuns = 1 }, "limits.max_runs is reached (1)"},
		"limits.max_connections": {func(c *LimitsConfig) { c.MaxConnections = 3 }, "limits.max_connections is reached (3)"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, quickly, func(_ *bed, config *Config) { c.limit(&config.Limits) })
			ctx, cancel := context.WithTimeout(context.Background(), 3*receivertestbed.Patience)
			defer cancel()
			a := connect(b, 1)
			a.join()
			a.join()
			r := <-runRestless(ctx, b)
			assert.Equal(t, bytefrogagent.Refused, r.Outcome, "%s (%v)", r.Reason, r.Err)
			assert.Contains(t, r.Reason, c.text)
			assert.Zero(t, r.Configuration.DataConnections)
			a.finish()
			b.awaitRuns(0)
		})
	}
}

// areShortened reports whether the shutdown has begun for new connections.
func (h *handshakes) areShortened() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.latest.IsZero()
}

// lateConn says nothing until it may.
type lateConn struct {
	net.Conn
	may <-chan struct{}
}

func (c *lateConn) Write(b []byte) (int, error) {
	<-c.may
	return c.Conn.Write(b)
}

func TestTheProgramOfAnAgentContinuesAfterAHelloDuringTheShutdown(t *testing.T) {
	b := newBed(t, func(b *bed, _ *Config) {
		timing := defaultTiming()
		timing.hello = receivertestbed.Patience / 2
		b.timing = &timing
	})
	ctx, cancel := context.WithTimeout(context.Background(), 3*receivertestbed.Patience)
	defer cancel()
	may, address := make(chan struct{}), b.address()
	results := runRestless(ctx, b, func(o *bytefrogagent.Options) {
		o.Dial = func(ctx context.Context) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
			return &lateConn{Conn: conn, may: may}, err
		}
	})
	b.Await("the connection", func() bool { return b.openConnections() == 1 })
	done := b.shutdownInBackground()
	b.Await("the shutdown", b.receiver.handshakes.areShortened)
	close(may)
	require.NoError(t, <-done)
	r := <-results
	assert.Equal(t, bytefrogagent.Refused, r.Outcome, "%s (%v)", r.Reason, r.Err)
	assert.Contains(t, r.Reason, "the receiver is shutting down")
}

func TestAnAgentThatIsReadyGetsTheReasonImmediately(t *testing.T) {
	b := newBed(t, quickly, func(b *bed, c *Config) {
		c.Limits.MaxRuns = 1
		b.timing.ready = time.Hour
	})
	a := connect(b, 2)
	p := dial(t, b.address())
	p.version = 2
	p.send(bytefrog.Hello{Version: 2}, bytefrog.Heartbeat{Mode: bytefrog.ModeInitializing},
		bytefrog.ClassReport{Result: bytefrog.TypeClassIgnored, Class: "demo/Shop"})
	p.expectToBeTurnedAway("limits.max_runs is reached (1)")
	p.close()
	a.finish()
	b.awaitRuns(0)
}
