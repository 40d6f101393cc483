// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package receivertestbed

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/componentkit/schema"
)

// Record is a log record with its resource and scope.
type Record struct {
	plog.LogRecord
	Resource pcommon.Resource
	Scope    pcommon.InstrumentationScope
}

// Records returns the delivered log records in order: those of an event, or, for "", all.
// Each has to have the schema URL.
func (b *Bed) Records(event string) (records []Record) {
	b.T.Helper()
	for _, logs := range b.Logs.AllLogs() {
		for _, resource := range logs.ResourceLogs().All() {
			assert.Equal(b.T, schema.URL, resource.SchemaUrl())
			for _, scope := range resource.ScopeLogs().All() {
				assert.Equal(b.T, schema.URL, scope.SchemaUrl())
				for _, r := range scope.LogRecords().All() {
					if event == "" || r.EventName() == event {
						records = append(records, Record{r, resource.Resource(), scope.Scope()})
					}
				}
			}
		}
	}
	return records
}

// AwaitRecords waits for n log records of an event, and returns them.
func (b *Bed) AwaitRecords(event string, n int) []Record {
	b.T.Helper()
	b.Await("log records "+event, func() bool { return len(b.Records(event)) >= n })
	records := b.Records(event)
	require.Len(b.T, records, n)
	return records
}

// Spans returns the delivered spans in order. Each has to have the schema URL.
func (b *Bed) Spans() (spans []ptrace.Span) {
	b.T.Helper()
	for _, traces := range b.Traces.AllTraces() {
		for _, resource := range traces.ResourceSpans().All() {
			assert.Equal(b.T, schema.URL, resource.SchemaUrl())
			for _, scope := range resource.ScopeSpans().All() {
				assert.Equal(b.T, schema.URL, scope.SchemaUrl())
				for _, s := range scope.Spans().All() {
					spans = append(spans, s)
				}
			}
		}
	}
	return spans
}
