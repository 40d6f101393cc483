// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/testkit/nested"
)

// Nested sends OTLP requests whose resources are nested as deep as their bytes allow: alone, with a
// readable batch of call events, and with an unreadable one.
type Nested struct {
	// GRPC and HTTP are the endpoints of an OTLP receiver, host:port; empty: none.
	GRPC, HTTP string
	// Sizes are the sizes of the requests, in MB.
	Sizes []int
	// Pause is the time after each request.
	Pause time.Duration

	requests, taken, refused, bytes atomic.Int64
}

// Attack sends each request once.
func (n *Nested) Attack(ctx context.Context) error {
	ways := []nested.Way{}
	if n.GRPC != "" {
		ways = append(ways, nested.GRPC, nested.GRPCGzip)
	}
	if n.HTTP != "" {
		ways = append(ways, nested.HTTP, nested.HTTPGzip, nested.HTTPJSON)
	}
	batch, err := batchOf(callevent.StreamID{1, 2, 3}, 0, 1)
	if err != nil {
		return err
	}
	bad := callevent.Packed{Stream: batch.Stream, Events: batch.Events, Data: batch.Data[:len(batch.Data)-1]}
	for _, size := range n.Sizes {
		for _, way := range ways {
			address := n.HTTP
			if way.IsGRPC() {
				address = n.GRPC
			}
			for _, with := range []*callevent.Packed{nil, &batch, &bad} {
				if way.IsJSON() && with != nil {
					continue
				}
				request, err := nestedRequest(way, size*1_000_000, with)
				if err != nil {
					return err
				}
				n.requests.Add(1)
				n.bytes.Add(int64(len(request)))
				if err := nested.Send(ctx, way, address, nested.Traces, request); err != nil {
					n.refused.Add(1)
				} else {
					n.taken.Add(1)
				}
				if ctx.Err() != nil || !pause(ctx, n.Pause) {
					return nil
				}
			}
		}
	}
	return nil
}

// Sent returns the number of requests.
func (n *Nested) Sent() string {
	return fmt.Sprintf("%d nested requests, %s, %d accepted, %d refused", n.requests.Load(), mib(n.bytes.Load()), n.taken.Load(), n.refused.Load())
}

// nestedRequest returns a request with a nested resource, and with a batch unless it is nil.
func nestedRequest(way nested.Way, size int, batch *callevent.Packed) ([]byte, error) {
	place := nested.At(nested.Traces, "resource")
	if way.IsJSON() {
		request, _ := nested.JSON(place, nested.Lists, size)
		return request, nil
	}
	var beside []byte
	if batch != nil {
		traces := ptrace.NewTraces()
		batch.To(traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty())
		spans, err := ptraceotlp.NewExportRequestFromTraces(traces).MarshalProto()
		if err != nil {
			return nil, err
		}
		beside = nested.Inside(spans)
	}
	request, _ := nested.Protobuf(place, nested.Lists, size, beside)
	return request, nil
}

// batchOf returns a batch in which a call stream enters one function again and again, from a
// sequence number on.
func batchOf(stream callevent.StreamID, from uint64, calls int) (callevent.Packed, error) {
	packer, err := callevent.NewPacker(callevent.Stream{ID: stream, Epoch: time.Now().UnixNano(), Resolution: 1}, callevent.MinBatchBytes)
	if err != nil {
		return callevent.Packed{}, err
	}
	function, _ := packer.Function(&callevent.Function{Qualified: "attack.Forged.call", Display: "Forged.call"})
	lane, _ := packer.Lane(callevent.Lane{ID: 1, Name: "forged"})
	for i := range calls {
		packer.Add(&callevent.Event{Sequence: from + uint64(i), Time: int64(i), Lane: lane, Function: function, Kind: callevent.KindEnter})
	}
	return packer.Close(nil, from+uint64(calls), time.Now().UnixNano())
}
