// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/capture"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/sharedreceiver"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/runmemory"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/telemetry"
)

// runMemory is limits.max_run_memory of these tests.
const runMemory = 64 << 20

// defaultEnvironment returns an environment with the receiver's defaults.
func defaultEnvironment(t testing.TB, next consumer.Traces) *Environment {
	t.Helper()
	common, batches := receiverkit.DefaultConfig(), receiverkit.DefaultBatchesConfig()
	kit, err := receiverkit.New(receivertest.NewNopSettings(metadata.Type), &common, receiverkit.Names{Format: "bytefrog", Scope: metadata.ScopeName})
	require.NoError(t, err)
	own, err := telemetry.New(kit.Telemetry)
	require.NoError(t, err)
	return &Environment{
		Receiver: kit.NewRun(context.Background(), componenttest.NewNopHost(), sharedreceiver.Signals{Traces: next}), Telemetry: own, Timing: &Timing{},
		Settings: Settings{
			Agent: bytefrog.AgentConfiguration{BufferMemoryBudget: 4 << 20, DataConnections: 2}, TextKey: "text",
			Silence: time.Hour, MaxBlock: 5 * time.Second, Batches: &batches, NameWait: time.Second,
			MaxMessageSize: bytefrog.MaxString, MaxConnectionLead: 20_000,
		},
	}
}

// unconnectedRun returns a run without a network. Nothing of it has begun.
func unconnectedRun(env *Environment, memory int, control net.Conn, records Records) *run {
	return newRun(env, Options{
		ID: 1, Stream: callevent.StreamID{1}, Resource: pcommon.NewResource(), Version: 1, Control: newReader(control),
		Memory: runmemory.New(env.Receiver.Memory, memory, nil), Records: records,
	})
}

// startedRun returns a run whose agent was started, without data connections. Its control connection
// has ended.
func startedRun(t testing.TB, next consumer.Traces) *run {
	t.Helper()
	return startedRunIn(t, defaultEnvironment(t, next), runMemory)
}

func startedRunIn(t testing.TB, env *Environment, memory int) *run {
	t.Helper()
	client, server := net.Pipe()
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	r := unconnectedRun(env, memory, server, &recordedTexts{})
	close(r.life.started)
	close(r.control.ended)
	r.stream.StartClock(time.Now())
	return r
}

// recordedTexts has what an agent reports, as texts.
type recordedTexts struct{ lines []string }

func (n *recordedTexts) add(line string)                           { n.lines = append(n.lines, line) }
func (n *recordedTexts) Started(uint8, net.Addr)                   {}
func (n *recordedTexts) Mode(_, after bytefrog.Mode)               { n.add("mode " + after.String()) }
func (n *recordedTexts) Class(m bytefrog.ClassReport)              { n.add(m.Result.String() + " " + m.Class) }
func (n *recordedTexts) Error(m bytefrog.ErrorMessage)             { n.add("error " + m.Text) }
func (n *recordedTexts) Marker(bytefrog.Marker, uint64, time.Time) {}
func (n *recordedTexts) Ended(Ending)                              {}

// newDataConnection returns a connection that can be read, and has not joined its run.
func newDataConnection(r *run, conn net.Conn) (*dataConnection, error) {
	d := &dataConnection{run: r, in: newReader(conn)}
	return d, d.prepare()
}

// newReader returns a reader of a connection.
func newReader(conn net.Conn) *connreader.Reader {
	return connreader.New(conn, connreader.Settings{
		Buffer: dataBytes, MaxMessage: bytefrog.MaxMessageSize(bytefrog.MaxString), MessageTimeout: time.Minute,
	})
}

// piece is a connection whose next read returns these bytes.
type piece struct {
	net.Conn
	bytes []byte
}

func (p *piece) Read(b []byte) (n int, err error) {
	n = copy(b, p.bytes)
	p.bytes = p.bytes[n:]
	return n, nil
}

func (p *piece) SetReadDeadline(time.Time) error { return nil }

func discard(spans func(ptrace.Traces)) consumer.Traces {
	next, err := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error { spans(td); return nil })
	if err != nil {
		panic(err)
	}
	return next
}

func openCapture(t testing.TB, name string) *capture.Capture {
	t.Helper()
	c, err := capture.Open("../../../../testdata/bytefrog/" + name + ".zip")
	require.NoError(t, err)
	return c
}

func encode(messages ...bytefrog.Message) []byte {
	var b []byte
	for _, m := range messages {
		b = m.AppendTo(b)
	}
	return b
}
