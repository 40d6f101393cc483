// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"net/http"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// backend takes spans, and counts those of each service. It can be told to refuse.
type backend struct {
	refuses  atomic.Bool
	refused  atomic.Int64
	mu       sync.Mutex
	services map[string]*delivered
}

// delivered is what came of one service.
type delivered struct {
	spans, duplicates int64
	truncated         map[string]int64 // by cause
	// seen are the numbers of the spans of each call stream, a bit for each.
	seen map[string][]uint64
}

func newBackend() *backend { return &backend{services: map[string]*delivered{}} }

// take counts what came, or refuses it so that it comes again.
func (b *backend) take(traces ptrace.Traces) int {
	if b.refuses.Load() {
		b.refused.Add(1)
		return http.StatusServiceUnavailable
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, rs := range traces.ResourceSpans().All() {
		service, _ := rs.Resource().Attributes().Get("service.name")
		instance, _ := rs.Resource().Attributes().Get("service.instance.id")
		d := b.services[service.AsString()]
		if d == nil {
			d = &delivered{truncated: map[string]int64{}, seen: map[string][]uint64{}}
			b.services[service.AsString()] = d
		}
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				d.add(instance.AsString(), span)
			}
		}
	}
	return http.StatusOK
}

func (d *delivered) add(instance string, span ptrace.Span) {
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
	if cause, ok := span.Attributes().Get("callbraid.truncated"); ok {
		d.truncated[cause.Str()]++
	}
}

// of is what came of a service so far.
func (b *backend) of(service string) delivered {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := b.services[service]; d != nil {
		return *d
	}
	return delivered{}
}
