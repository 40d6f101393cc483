// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/callbraid/callbraid/internal/budget"
	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/callevent"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/metadata"
)

// deskRun is a run without a network, whose agent was started.
func deskRun(t testing.TB, next consumer.Traces, config *Config) *run {
	t.Helper()
	r, err := newReceiver(receivertest.NewNopSettings(metadata.Type), config)
	require.NoError(t, err)
	r.env.ctx, r.env.traces = context.Background(), next
	r.env.memory = budget.New(1 << 40).Group("test")
	r.env.metrics = newMetricsLoop(r.env, r.settings, nil)
	run, err := newRun(r.env, 1, 1, deskInput(t, config))
	require.NoError(t, err)
	close(run.started)
	close(run.control.ended)
	return run
}

func deskInput(t testing.TB, config *Config) *input {
	client, server := net.Pipe()
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	return newInput(server, inputBytes, config.Limits.MaxMessageSize, time.Minute)
}

// feed gives bytes to a data connection in pieces, as reads would bring them, and
// reports whether it would have been read to the end.
func feed(d *dataConnection, b []byte, piece int) bool {
	now := time.Now()
	for len(b) > 0 {
		d.in.makeRoom()
		n := copy(d.in.buf[d.in.end:], b[:min(piece, len(b))])
		d.in.end += n
		b = b[n:]
		if !d.take(n, now) {
			return false
		}
		now = now.Add(time.Millisecond)
		d.batch.attend(now)
	}
	return true
}

// FuzzDataConnection: whatever comes on a data connection, in whatever pieces, what
// is handed on can be unpacked, no number stands in it that was not sent, and memory
// stays in its bounds.
func FuzzDataConnection(f *testing.F) {
	for _, name := range []string{"shop", "suspend"} {
		for _, data := range openCapture(f, name).Data {
			f.Add(data[helloBytes:min(len(data), 4_000)], 700)
		}
	}
	f.Add(append(namesOne(), calls(0, 100)...), 7)
	f.Add(encode(bytefrog.Marker{Sequence: 1, Key: "k", Value: "v"}, bytefrog.ErrorMessage{Text: "x"}), 1)
	f.Add(append(append(method(5, "a"), enter(0, 5, 3, 0)...), method(5, "b")...), 1000)
	config := createDefaultConfig()
	config.Limits.MaxRunMemory = minRunMemory
	config.NameWait = 3 * time.Millisecond
	f.Fuzz(func(t *testing.T, b []byte, piece int) {
		sent := 0
		check, err := consumer.NewTraces(func(_ context.Context, traces ptrace.Traces) error {
			span := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
			data, err := callevent.Data(span)
			require.NoError(t, err)
			var batch callevent.Batch
			require.NoError(t, batch.Unpack(data))
			sent += batch.Len()
			return nil
		})
		require.NoError(t, err)
		run := deskRun(t, check, config)
		d, err := newDataConnection(run, deskInput(t, config))
		require.NoError(t, err)
		require.NoError(t, run.data.attach(d))
		feed(d, b, max(1, piece%(inputBytes+1)))
		require.LessOrEqual(t, len(d.in.buf), bytefrog.MaxMessageSize(config.Limits.MaxMessageSize))
		d.finishNow()
		require.EqualValues(t, run.stream.received.Load(), sent)
		require.LessOrEqual(t, run.stream.memory.used.Load(), run.stream.memory.limit)
		run.data.finished.Done()
	})
}

// FuzzControlConnection: whatever comes on a control connection ends it, or not.
func FuzzControlConnection(f *testing.F) {
	for name := range captures {
		control := openCapture(f, name).Control
		f.Add(control[helloBytes:min(len(control), 5_000)])
	}
	f.Add(encode(bytefrog.DataBreak{Sequence: 1 << 31}, bytefrog.Heartbeat{Mode: 'X'}))
	config := createDefaultConfig()
	f.Fuzz(func(t *testing.T, b []byte) {
		run := deskRun(t, consumertest.NewNop(), config)
		in := run.control.in
		for len(b) > 0 {
			in.makeRoom()
			n := copy(in.buf[in.end:], b)
			in.end += n
			b = b[n:]
			if run.decodeControl() != nil {
				return
			}
		}
	})
}
