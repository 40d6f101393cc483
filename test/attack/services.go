// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// Services sends spans over OTLP, each of another service that does not exist.
type Services struct {
	// Endpoint is the address of an OTLP receiver over gRPC, host:port.
	Endpoint string
	// Names is the number of services.
	Names int

	tally
}

// Attack sends a span of each service.
func (n *Services) Attack(ctx context.Context) error {
	client, end, err := otlpClient(n.Endpoint)
	if err != nil {
		return err
	}
	defer end()
	for sent := 0; sent < n.Names && ctx.Err() == nil; sent += batchesOfRequest {
		traces := ptrace.NewTraces()
		for i := range min(batchesOfRequest, n.Names-sent) {
			addSpan(traces, fmt.Sprintf("forged-%d", sent+i), "forged", uint64(sent+i+1))
		}
		n.messages.Add(int64(traces.SpanCount()))
		if _, err := client.Export(ctx, ptraceotlp.NewExportRequestFromTraces(traces)); err != nil {
			n.refused.Add(int64(traces.SpanCount()))
			pause(ctx, 10*time.Millisecond)
		}
	}
	return nil
}

// Sent returns the number of services.
func (n *Services) Sent() string {
	return fmt.Sprintf("%d services, %d refused", n.messages.Load(), n.refused.Load())
}

// addSpan adds a span of 1 ms without a parent.
func addSpan(traces ptrace.Traces, service, name string, id uint64) {
	rs := traces.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", service)
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	now := time.Now()
	var bytes [16]byte
	binary.BigEndian.PutUint64(bytes[:], uint64(now.UnixNano()))
	binary.BigEndian.PutUint64(bytes[8:], id)
	span.SetTraceID(bytes)
	span.SetSpanID(pcommon.SpanID(bytes[8:]))
	span.SetName(name)
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-time.Millisecond)))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(now))
}
