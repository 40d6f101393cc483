// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/internal/lttng/sim/synthetic"
)

// jumpingClock is the receiver's clock. It runs like others, and a test can make it jump.
type jumpingClock struct{ jumped atomic.Int64 }

func (c *jumpingClock) now() time.Time       { return time.Now().Add(time.Duration(c.jumped.Load())) }
func (c *jumpingClock) jump(d time.Duration) { c.jumped.Add(int64(d)) }

// slowPipeline needs a long time for each batch.
type slowPipeline struct {
	pipeline
	clock *jumpingClock
	takes time.Duration
}

func (p *slowPipeline) ConsumeTraces(ctx context.Context, traces ptrace.Traces) error {
	p.clock.jump(p.takes)
	return p.pipeline.ConsumeTraces(ctx, traces)
}

// waitingForALateStream returns a session in which the first stream's event at 20 waits for the second one. That
// sends its next data after a second.
func waitingForALateStream() *lttnglive.Recording {
	s := synthetic.New("held", "vpid", "vtid")
	s.Class(mapping.EventCygEntry, "addr", "call_site")
	s.Stream().Packet(10).Event(10, mapping.EventCygEntry, 7, 7, 16, 0).Event(20, mapping.EventCygEntry, 7, 7, 48, 0)
	s.Stream().Packet(15).Event(15, mapping.EventCygEntry, 7, 7, 32, 0).Packet(30).Event(30, mapping.EventCygEntry, 7, 7, 64, 0)
	recording := s.Recording(1)
	recording.End = 2 * time.Second
	for i := range recording.Streams {
		recording.Streams[i].End = 2 * time.Second
	}
	recording.Streams[2].Steps[1].At = time.Second
	return recording
}

// Streams cannot send anything while the session is not read.
func TestTimeInWhichTheSessionIsNotReadDoesNotCountForMaxDelay(t *testing.T) {
	const long = 2 * time.Hour
	for name, c := range map[string]struct {
		// takes is the time of the pipeline for a batch, off the time without a connection.
		takes, off time.Duration
	}{
		"because the pipeline is slow":   {takes: long},
		"because the connection is lost": {off: long},
	} {
		t.Run(name, func(t *testing.T) {
			var relayed handClock
			var asked atomic.Int64
			r := newRelay(t, []*lttnglive.Recording{waitingForALateStream()}, lttnglive.RelayOptions{Clock: func() time.Duration {
				asked.Add(1)
				return relayed.read()
			}})
			var clock jumpingClock
			slow := &slowPipeline{clock: &clock, takes: c.takes}
			b := unstartedBed(t, reading(r.address()), func(_ *bed, c *Config) { c.MaxDelay, c.KeepaliveInterval = long/2, time.Hour })
			b.receiver.kit.Now, b.next.Traces = clock.now, slow
			var down atomic.Bool
			dial := b.receiver.env.Dial
			b.receiver.env.Dial = func(ctx context.Context) (net.Conn, error) {
				if down.Load() {
					return nil, errRefused
				}
				return dial(ctx)
			}
			require.NoError(t, b.component().Start(t.Context(), b.host))
			t.Cleanup(b.shutdown)
			b.await("the calls before", func() bool { return slow.events() == 2 })
			if c.off > 0 {
				down.Store(true)
				r.hangUp()
				b.awaitSaid("The connection to the relay daemon failed: the receiver connects again")
				clock.jump(c.off)
				down.Store(false)
				b.awaitSaid("The session is attached again")
			}
			then := asked.Load()
			b.await("more requests", func() bool { return asked.Load() > then+100 })
			relayed.move(2 * time.Second)
			b.awaitSaid("The session was closed")
			b.shutdown()
			assert.Zero(t, b.said.FilterMessageSnippet("A stream sends nothing").Len())
			assert.Zero(t, b.metric("receiver_lttng_live_events_late"))
			assert.Equal(t, []string{"enter 0x10 7", "enter 0x20 7", "enter 0x30 7", "enter 0x40 7"}, slow.only(t).story(t))
		})
	}
}
