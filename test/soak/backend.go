// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
)

// backend accepts the data that the collectors send over OTLP/HTTP, and counts it. It can refuse,
// read slowly, and be absent for a while.
type backend struct {
	refuses, crawls atomic.Bool
	// server is nil while the backend is away.
	server  *http.Server
	address string
	handler http.Handler

	mu       sync.Mutex
	services map[string]*delivered
	records  map[string]int64 // log records by the name of their event
	sums     sums
	calls    int64 // in profiles
}

// serve runs the backend until the end of the test, and returns its endpoint.
func serve(t testing.TB) (b *backend, endpoint string) {
	t.Helper()
	b = &backend{address: testkit.Address(t), services: map[string]*delivered{}, records: map[string]int64{}, sums: sums{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/traces", b.answer(func(body []byte) error {
		traces, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(body)
		if err == nil {
			b.countTraces(traces)
		}
		return err
	}))
	mux.HandleFunc("/v1/logs", b.answer(func(body []byte) error {
		logs, err := new(plog.ProtoUnmarshaler).UnmarshalLogs(body)
		if err == nil {
			b.countLogs(logs)
		}
		return err
	}))
	mux.HandleFunc("/v1/metrics", b.answer(func(body []byte) error {
		metrics, err := new(pmetric.ProtoUnmarshaler).UnmarshalMetrics(body)
		if err == nil {
			b.sums.learn(metrics)
		}
		return err
	}))
	mux.HandleFunc("/v1development/profiles", b.answer(func(body []byte) error {
		profiles, err := kit.UnmarshalProfiles(body)
		if err == nil {
			b.countProfiles(profiles)
		}
		return err
	}))
	b.handler = mux
	require.NoError(t, b.listen())
	t.Cleanup(func() { require.NoError(t, b.close()) })
	return b, "http://" + b.address
}

// listen starts the backend's server, unless it runs.
func (b *backend) listen() error {
	if b.server != nil {
		return nil
	}
	listener, err := net.Listen("tcp", b.address)
	if err != nil {
		return err
	}
	b.server = &http.Server{Handler: b.handler, ReadHeaderTimeout: time.Minute}
	go func(server *http.Server) { _ = server.Serve(listener) }(b.server)
	return nil
}

// close does to clients what the end of the backend's process does: it closes connections and
// refuses new ones. If the backend refused for long enough before, it has answered all accepted
// requests.
func (b *backend) close() error {
	if b.server == nil {
		return nil
	}
	server := b.server
	b.server = nil
	return server.Close()
}

// answer accepts requests of one signal, or refuses them so that clients repeat them.
func (b *backend) answer(count func(body []byte) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := b.read(r.Body)
		if err != nil {
			return // the client disconnected
		}
		if b.refuses.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if err := count(body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}
}

// read reads a request. While the backend crawls, it reads small pieces.
func (b *backend) read(from io.Reader) (body []byte, err error) {
	const piece, pause = 4 << 10, 50 * time.Millisecond
	for b.crawls.Load() {
		read, err := io.ReadAll(io.LimitReader(from, piece))
		body = append(body, read...)
		if err != nil || len(read) < piece {
			return body, err
		}
		time.Sleep(pause)
	}
	rest, err := io.ReadAll(from)
	return append(body, rest...), err
}

// delivered counts the delivered calls of one service.
type delivered struct {
	spans, duplicates int64
	// events is the number of call events of the spans.
	events    int64
	truncated map[string]int64 // by cause
	// traces is the number of spans without a parent.
	traces int64
	// seen has the sequence numbers of the spans of each call stream, one bit for each.
	seen map[string][]uint64
}

func (b *backend) countTraces(traces ptrace.Traces) {
	for _, rs := range traces.ResourceSpans().All() {
		service, instance := textOf(rs.Resource(), "service.name"), textOf(rs.Resource(), "service.instance.id")
		d := b.services[service]
		if d == nil {
			d = &delivered{truncated: map[string]int64{}, seen: map[string][]uint64{}}
			b.services[service] = d
		}
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				d.count(instance, span)
			}
		}
	}
}

// textOf returns an attribute of a resource; empty: it has none.
func textOf(resource pcommon.Resource, key string) string {
	if value, ok := resource.Attributes().Get(key); ok {
		return value.AsString()
	}
	return ""
}

func (d *delivered) count(instance string, span ptrace.Span) {
	if number, ok := span.Attributes().Get("callbraid.sequence"); ok {
		word, bit := number.Int()/64, uint64(1)<<(number.Int()%64)
		for int64(len(d.seen[instance])) <= word {
			d.seen[instance] = append(d.seen[instance], 0)
		}
		if d.seen[instance][word]&bit != 0 {
			d.duplicates++
			return
		}
		d.seen[instance][word] |= bit
	}
	d.spans++
	if span.ParentSpanID().IsEmpty() {
		d.traces++
	}
	cause, isTruncated := span.Attributes().Get("callbraid.truncated")
	if isTruncated {
		d.truncated[cause.Str()]++
	}
	d.events += eventsOf(span, isTruncated)
}

// eventsOf returns the number of call events of a span: the entry, the throws, and the end. An
// exception at the time of the end left the call, and is no event of its own unless the span is
// truncated.
func eventsOf(span ptrace.Span, isTruncated bool) int64 {
	n := 1 + int64(span.DroppedEventsCount())
	if !isTruncated {
		n++
	}
	for _, e := range span.Events().All() {
		if isTruncated || e.Timestamp() < span.EndTimestamp() {
			n++
		}
	}
	return n
}

func (b *backend) countLogs(logs plog.Logs) {
	for _, rl := range logs.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				b.records[record.EventName()]++
			}
		}
	}
}

func (b *backend) countProfiles(profiles pprofile.Profiles) {
	texts := profiles.Dictionary().StringTable()
	for _, rp := range profiles.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				if texts.At(int(p.SampleType().TypeStrindex())) != "calls" {
					continue
				}
				for _, s := range p.Samples().All() {
					b.calls += s.Values().At(0)
				}
			}
		}
	}
}

// of returns the delivered calls of a service.
func (b *backend) of(service string) delivered {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := b.services[service]; d != nil {
		return *d
	}
	return delivered{}
}

// recordsOf returns the number of log records of an event.
func (b *backend) recordsOf(event string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.records[event]
}

// sum returns the sum of a cumulative metric, of all series and all lives of their senders, or of those of a service.
func (b *backend) sum(metric string, service ...string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sums.of(metric, service...)
}

// callsInProfiles returns the number of calls in all profiles.
func (b *backend) callsInProfiles() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}
