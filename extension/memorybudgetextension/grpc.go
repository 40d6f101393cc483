// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package memorybudgetextension

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/callbraid/callbraid/internal/componentkit/otlpsize"
)

// A gRPC server decodes a request before its interceptors run, in a codec without a context whose
// errors all become Internal. So the codec here decodes no OTLP request. Each of these steps runs
// in the goroutine of the call:
//
//  1. The tap, when the header of the call has arrived: counts the open request.
//  2. The codec, when the message has arrived: keeps its bytes, by the address of the message.
//  3. The stats handler, immediately after it: moves the bytes to the call.
//  4. The interceptor, after authentication: judges, reserves memory, decodes, calls the receiver.
//  5. The stats handler, at the end of each call, for any outcome: releases everything.
type grpcServer struct {
	*requests
	decoder encoding.CodecV2
	pool    mem.BufferPool
	// waiting has the bytes (mem.BufferSlice) between steps 2 and 3.
	waiting sync.Map
}

// call is one call of the server.
type call struct {
	peer  string
	leave func()
	// begun: the call has a handler, so it will end. Until then the stream's context counts it off.
	begun atomic.Bool
	// arriving ends the call if its message does not arrive in time.
	arriving *time.Timer
	data     mem.BufferSlice
	taken    int
}

type callKey struct{}

// ofGRPC is how many copies there are of the bytes of a request: as they arrived, and in one piece.
const ofGRPC = 2

func newGRPCServer(q *requests) *grpcServer {
	return &grpcServer{
		requests: q, decoder: encoding.GetCodecV2(proto.Name),
		// Sizes of OTLP requests, as the Collector's own codec has them.
		pool: mem.NewTieredBufferPool(256, 4<<10, 16<<10, 32<<10, 512<<10, 1<<20, 4<<20, 16<<20),
	}
}

func (s *grpcServer) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.InTapHandle(s.tap), grpc.ForceServerCodecV2(s), grpc.StatsHandler(s), grpc.ChainUnaryInterceptor(s.decode),
	}
}

// requestsOf are the types of messages that the receiver's codec decodes, of
// go.opentelemetry.io/collector/pdata/internal.
var requestsOf = map[string]otlpsize.Message{
	"*internal.ExportTraceServiceRequest":    otlpsize.Traces,
	"*internal.ExportLogsServiceRequest":     otlpsize.Logs,
	"*internal.ExportMetricsServiceRequest":  otlpsize.Metrics,
	"*internal.ExportProfilesServiceRequest": otlpsize.Profiles,
}

// tap is step 1. The stream's context ends with the stream, so a call that never gets a handler
// is counted off as well.
func (s *grpcServer) tap(ctx context.Context, _ *tap.Info) (context.Context, error) {
	c := &call{}
	if p, ok := peer.FromContext(ctx); ok {
		c.peer = p.Addr.String()
	}
	leave, r := s.enter(c.peer)
	if r != nil {
		s.report(ctx, r, c.peer, requestRefused)
		return ctx, r.status().Err()
	}
	c.leave = leave
	ctx, cancel := context.WithCancel(context.WithValue(ctx, callKey{}, c))
	c.arriving = time.AfterFunc(s.config.ReadTimeout, cancel)
	context.AfterFunc(ctx, func() {
		c.arriving.Stop()
		cancel()
		if !c.begun.Load() {
			leave()
		}
	})
	return ctx, nil
}

// Name is that of the Collector's codec.
func (s *grpcServer) Name() string { return s.decoder.Name() }

// Marshal encodes an answer.
func (s *grpcServer) Marshal(message any) (mem.BufferSlice, error) { return s.decoder.Marshal(message) }

// Unmarshal is step 2. OTLP has no streams, so each request has an interceptor.
func (s *grpcServer) Unmarshal(data mem.BufferSlice, message any) error {
	if _, ok := requestsOf[fmt.Sprintf("%T", message)]; !ok {
		return s.decoder.Unmarshal(data, message)
	}
	data.Ref()
	s.waiting.Store(message, data)
	return nil
}

// TagConn belongs to stats.Handler.
func (s *grpcServer) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn belongs to stats.Handler.
func (s *grpcServer) HandleConn(context.Context, stats.ConnStats) {}

// TagRPC makes the call known where the server has no tap: behind another HTTP server.
func (s *grpcServer) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	if ctx.Value(callKey{}) == nil {
		return context.WithValue(ctx, callKey{}, &call{})
	}
	return ctx
}

// HandleRPC is steps 3 and 5.
func (s *grpcServer) HandleRPC(ctx context.Context, what stats.RPCStats) {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return
	}
	switch what := what.(type) {
	case *stats.Begin:
		c.begun.Store(true)
	case *stats.InPayload:
		if c.arriving != nil {
			c.arriving.Stop()
		}
		if data, ok := s.waiting.LoadAndDelete(what.Payload); ok {
			c.data = data.(mem.BufferSlice)
		}
	case *stats.End:
		c.free()
		s.account.Release(c.taken)
		c.taken = 0
		if c.leave != nil {
			c.leave()
		}
	}
}

// free releases the bytes of the message.
func (c *call) free() {
	c.data.Free()
	c.data = nil
}

// decode is step 4.
func (s *grpcServer) decode(ctx context.Context, message any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if c, ok := ctx.Value(callKey{}).(*call); ok && c.data != nil {
		if err := s.decodeCall(ctx, c, message); err != nil {
			return nil, err
		}
	}
	return next(ctx, message)
}

// decodeCall decodes the message of a call, if there is memory for it.
func (s *grpcServer) decodeCall(ctx context.Context, c *call, message any) error {
	defer c.free()
	// The decoder has no copy of its own of a message that is in one piece.
	whole := c.data.MaterializeToBuffer(s.pool)
	defer whole.Free()
	body := whole.ReadOnlyData()
	kind := requestsOf[fmt.Sprintf("%T", message)]
	taken, r := s.judge(body, ofGRPC*len(body), func(body []byte, most int) (otlpsize.Size, error) {
		return otlpsize.Protobuf(kind, body, most)
	})
	if r != nil {
		s.report(ctx, r, c.peer, requestRefused)
		return r.status().Err()
	}
	c.taken = taken
	if err := s.decoder.Unmarshal(mem.BufferSlice{whole}, message); err != nil {
		return status.Errorf(codes.Internal, "grpc: error unmarshalling request: %v", err)
	}
	return nil
}
