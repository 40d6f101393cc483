// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
)

// delivered counts the data of honest senders that a backend received.
type delivered struct {
	mu sync.Mutex
	// calls counts the spans of calls of honest programs, each once, and requests those of OTLP
	// senders. again counts calls that arrived twice, because a request was repeated.
	calls, requests, again int64
	seen                   map[pcommon.SpanID]bool
}

// Names distinguish honest spans. No attacker calls functions without a name. A function whose name
// arrives too late on a busy machine still counts as honest.
const (
	honestFunctions = "load."           // see package load
	namelessPrefix  = "unknown.method#" // of the bytefrog receiver
	honestRequest   = "honest request"
)

func (d *delivered) record(traces ptrace.Traces) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, rs := range traces.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				function, isCall := span.Attributes().Get("code.function.name")
				switch {
				case isCall && (strings.HasPrefix(function.AsString(), honestFunctions) || strings.HasPrefix(function.AsString(), namelessPrefix)):
					d.addCall(span.SpanID())
				case span.Name() == honestRequest:
					d.requests++
				}
			}
		}
	}
}

// addCall counts a call. The caller holds the lock.
func (d *delivered) addCall(id pcommon.SpanID) {
	if d.seen[id] {
		d.again++
		return
	}
	if d.seen == nil {
		d.seen = map[pcommon.SpanID]bool{}
	}
	d.seen[id] = true
	d.calls++
}

// sums returns the numbers of now.
func (d *delivered) sums() (calls, requests, again int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls, d.requests, d.again
}

// otlpBackend is a backend that speaks OTLP over gRPC, as Jaeger does.
type otlpBackend struct {
	ptraceotlp.UnimplementedGRPCServer
	delivered
}

// Export accepts a request.
func (b *otlpBackend) Export(_ context.Context, request ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	b.record(request.Traces())
	return ptraceotlp.NewExportResponse(), nil
}

// serveBackend runs a backend until the end of the test.
func serveBackend(t testing.TB, address string) *otlpBackend {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	b, server := &otlpBackend{}, grpc.NewServer(grpc.MaxRecvMsgSize(64<<20))
	ptraceotlp.RegisterGRPCServer(server, b)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // ends with Stop
	}()
	t.Cleanup(func() {
		server.Stop()
		<-done
	})
	return b
}

// spansFile is a file with spans that a collector writes: a line of OTLP JSON for each
// hand-over.
type spansFile struct {
	delivered
	path string
	read int64 // bytes of whole lines
}

// readLines reads the new lines of the file.
func (f *spansFile) readLines() error {
	file, err := os.Open(f.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(f.read, io.SeekStart); err != nil {
		return err
	}
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // a rest is still being written
		}
		if err != nil {
			return err
		}
		traces, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces(line)
		if err != nil {
			return err
		}
		f.record(traces)
		f.read += int64(len(line))
	}
}
