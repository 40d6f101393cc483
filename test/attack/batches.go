// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// Batches sends three kinds of forged batches of call events over OTLP. Each batch of the first
// kind has its own call stream, whose calls never end. Those of the second kind have one call
// stream, and each is far ahead of the one before. Those of the third kind wait for lower numbers.
type Batches struct {
	// Endpoint is the address of an OTLP receiver over gRPC, host:port.
	Endpoint string
	// Streams is the number of call streams of each kind.
	Streams int

	tally
}

// batchesOfRequest is the number of batches in one request.
const batchesOfRequest = 500

// Attack sends all batches.
func (n *Batches) Attack(ctx context.Context) error {
	client, end, err := otlpClient(n.Endpoint)
	if err != nil {
		return err
	}
	defer end()
	var one callevent.StreamID
	_, _ = rand.Read(one[:]) // never fails
	for sent := 0; sent < n.Streams && ctx.Err() == nil; sent += batchesOfRequest {
		traces := ptrace.NewTraces()
		rs := traces.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", "forged")
		spans := rs.ScopeSpans().AppendEmpty().Spans()
		for i := range batchesOfRequest {
			var id callevent.StreamID
			_, _ = rand.Read(id[:])
			from := uint64(0)
			switch i % 10 {
			case 0: // far ahead
				id, from = one, uint64(sent+i)*100_000
			case 1, 2, 3: // waits
				from = 100
			}
			batch, err := batchOf(id, from, 3)
			if err != nil {
				return err
			}
			batch.To(spans.AppendEmpty())
		}
		n.messages.Add(batchesOfRequest)
		if _, err := client.Export(ctx, ptraceotlp.NewExportRequestFromTraces(traces)); err != nil {
			n.refused.Add(batchesOfRequest)
			pause(ctx, 10*time.Millisecond)
		}
	}
	return nil
}

// Sent returns the number of batches.
func (n *Batches) Sent() string {
	return fmt.Sprintf("%d batches, %d refused", n.messages.Load(), n.refused.Load())
}

// otlpClient returns a client that sends traces to an OTLP receiver, and a function that closes it.
func otlpClient(endpoint string) (client ptraceotlp.GRPCClient, end func(), err error) {
	connection, err := grpc.NewClient("passthrough:///"+endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, nil, err
	}
	return ptraceotlp.NewGRPCClient(connection), func() { _ = connection.Close() }, nil
}
