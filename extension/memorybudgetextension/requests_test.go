// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package memorybudgetextension

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/callbraid/callbraid/extension/memorybudgetextension/internal/metadata"
	"github.com/callbraid/callbraid/extension/memorybudgetextension/internal/metadatatest"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/nested"
)

// receiver is an OTLP receiver as the Collector has it, behind the extension.
type receiver struct {
	ptraceotlp.UnimplementedGRPCServer
	*memoryBudget
	telemetry *componenttest.Telemetry
	logs      *observer.ObservedLogs
	grpc      string
	http      string

	mu sync.Mutex
	// spans is the number of received spans. If answers is not nil, each request waits for it.
	spans   int
	answers chan error
	// inside is how many requests wait for an answer.
	inside chan struct{}
}

func (r *receiver) Export(ctx context.Context, request ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	r.mu.Lock()
	r.spans += request.Traces().SpanCount()
	r.mu.Unlock()
	if r.answers == nil {
		return ptraceotlp.NewExportResponse(), nil
	}
	r.inside <- struct{}{}
	select {
	case err := <-r.answers:
		return ptraceotlp.NewExportResponse(), err
	case <-ctx.Done():
		return ptraceotlp.NewExportResponse(), ctx.Err()
	}
}

// ServeHTTP decodes as the otlp receiver does.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err == nil {
		decoded := ptraceotlp.NewExportRequest()
		if request.Header.Get(contentType) == typeJSON {
			err = decoded.UnmarshalJSON(body)
		} else {
			err = decoded.UnmarshalProto(body)
		}
		if err == nil {
			_, err = r.Export(request.Context(), decoded)
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func startReceiver(t *testing.T, change func(*RequestsConfig)) *receiver {
	config := createDefaultConfig().(*Config)
	config.LimitMiB = 400
	if change != nil {
		change(&config.Requests)
	}
	r := &receiver{telemetry: componenttest.NewTelemetry(), inside: make(chan struct{}, 1000)}
	settings := metadatatest.NewSettings(r.telemetry)
	core, logs := observer.New(zap.WarnLevel)
	settings.Logger, r.logs = zap.New(core), logs
	var err error
	r.memoryBudget, err = newMemoryBudget(settings, config)
	require.NoError(t, err)

	options, err := r.GetGRPCServerOptions(t.Context())
	require.NoError(t, err)
	server := grpc.NewServer(options...)
	ptraceotlp.RegisterGRPCServer(server, r)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r.grpc = listener.Addr().String()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	wrap, err := r.GetHTTPHandler(t.Context())
	require.NoError(t, err)
	handler, err := wrap(t.Context(), r)
	require.NoError(t, err)
	web := httptest.NewServer(handler)
	r.http = web.Listener.Addr().String()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		server.Stop()
		// A server that stops before its Serve has begun, as in a short test, reports grpc.ErrServerStopped.
		if err := <-served; err != nil {
			require.ErrorIs(t, err, grpc.ErrServerStopped)
		}
		web.Close()
		r.checkNothingHeld(t)
		require.NoError(t, r.Shutdown(context.Background()))
		require.NoError(t, r.telemetry.Shutdown(context.Background()))
	})
	return r
}

// checkNothingHeld checks that each byte and each place was released exactly once.
func (r *receiver) checkNothingHeld(t *testing.T) {
	t.Helper()
	q := r.requests()
	require.True(t, testkit.Happens(func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.account.Used() == 0 && q.open == 0 && len(q.from) == 0
	}))
}

func (r *receiver) send(ctx context.Context, way nested.Way, request []byte) error {
	address := r.http
	if way.IsGRPC() {
		address = r.grpc
	}
	ctx, cancel := context.WithTimeout(ctx, testkit.Patience)
	defer cancel()
	return nested.Send(ctx, way, address, nested.Traces, request)
}

func (r *receiver) checkRefused(t *testing.T, why reason, times int64) {
	t.Helper()
	metadatatest.AssertEqualExtensionMemoryBudgetRefusedRequests(t, r.telemetry,
		[]metricdata.DataPoint[int64]{{Value: times, Attributes: attribute.NewSet(
			attribute.String("extension", metadata.Type.String()), attribute.String("reason", string(why)))}}, metricdatatest.IgnoreTimestamp())
	require.Equal(t, 1, r.logs.Len(), "one line for a burst")
	line := r.logs.All()[0].ContextMap()
	assert.Equal(t, string(why), line["reason"])
	assert.Contains(t, line["peer"], "127.0.0.1:")
}

// emptySpans is a request of so many spans, in protobuf or JSON.
func emptySpans(t *testing.T, n int, way nested.Way) []byte {
	td := ptrace.NewTraces()
	spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	spans.EnsureCapacity(n)
	for range n {
		spans.AppendEmpty()
	}
	request := ptraceotlp.NewExportRequestFromTraces(td)
	body, err := request.MarshalProto()
	if way.IsJSON() {
		body, err = request.MarshalJSON()
	}
	require.NoError(t, err)
	return body
}

func forEachWay(t *testing.T, test func(t *testing.T, way nested.Way)) {
	for _, way := range []nested.Way{nested.GRPC, nested.HTTP, nested.HTTPJSON} {
		t.Run(string(way), func(t *testing.T) { test(t, way) })
	}
}

func TestAnOrdinaryRequestIsReceived(t *testing.T) {
	forEachWay(t, func(t *testing.T, way nested.Way) {
		r := startReceiver(t, nil)
		require.NoError(t, r.send(t.Context(), way, emptySpans(t, 1000, way)))
		require.NoError(t, r.send(t.Context(), way, emptySpans(t, 0, way)))
		assert.Equal(t, 1000, r.spans)
		assert.Zero(t, r.logs.Len())
	})
}

func TestARequestThatIsTooDeepIsRefusedForGood(t *testing.T) {
	forEachWay(t, func(t *testing.T, way nested.Way) {
		r := startReceiver(t, nil)
		at := nested.At(nested.Traces, "span")
		request, _ := nested.Protobuf(at, nested.Lists, 1<<20, nil)
		if way.IsJSON() {
			request, _ = nested.JSON(at, nested.Maps, 1<<20)
		}
		for range 3 {
			r.checkPermanent(t, way, request, "requests.max_attribute_depth")
		}
		r.checkRefused(t, reasonDepth, 3)
	})
}

func TestARequestThatNeverFitsIsRefusedForGood(t *testing.T) {
	forEachWay(t, func(t *testing.T, way nested.Way) {
		r := startReceiver(t, nil)
		r.checkPermanent(t, way, emptySpans(t, 1<<18, way), "a quarter of requests.limit_mib")
		r.checkRefused(t, reasonSize, 1)
	})
}

func TestABrokenRequestIsRefusedForGood(t *testing.T) {
	for _, way := range []nested.Way{nested.GRPC, nested.HTTP} {
		t.Run(string(way), func(t *testing.T) {
			r := startReceiver(t, nil)
			r.checkPermanent(t, way, []byte("\x0a\x05"), "at byte 0")
			r.checkRefused(t, reasonMalformed, 1)
		})
	}
}

// The decoder may refuse a request that the walk accepts.
func TestMemoryOfARequestThatCannotBeDecodedIsReleased(t *testing.T) {
	forEachWay(t, func(t *testing.T, way nested.Way) {
		r := startReceiver(t, nil)
		require.Error(t, r.send(t.Context(), way, []byte("\x0a\x04\x12\x02\x12\x00\x0a\x06\x12\x04\x12\x02\x0a\x01")))
		r.checkNothingHeld(t)
		assert.Zero(t, r.spans)
	})
}

func (r *receiver) checkPermanent(t *testing.T, way nested.Way, request []byte, text string) {
	t.Helper()
	err := r.send(t.Context(), way, request)
	require.ErrorContains(t, err, text)
	if way.IsGRPC() {
		assert.Equal(t, codes.InvalidArgument, status.Code(err))
	} else {
		assert.ErrorContains(t, err, "400 Bad Request")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	assert.Zero(t, r.spans)
}

// checkRetryable checks an answer after which senders try again.
func checkRetryable(t *testing.T, way nested.Way, err error, text string) {
	t.Helper()
	require.ErrorContains(t, err, text)
	if way.IsGRPC() {
		assert.Equal(t, codes.Unavailable, status.Code(err))
	} else {
		assert.ErrorContains(t, err, "503 Service Unavailable")
	}
}

// Large requests fill half of the limit. A small one is accepted beside them, and a large one after
// they have ended.
func TestARequestWithoutRoomIsSentAgainLater(t *testing.T) {
	forEachWay(t, func(t *testing.T, way nested.Way) {
		r := startReceiver(t, nil)
		r.answers = make(chan error)
		many := 110_000 // 24 MB
		if way.IsJSON() {
			many = 42_000
		}
		large, small := emptySpans(t, many, way), emptySpans(t, 10, way)
		results := make(chan error, 10)
		sendOne := func(request []byte) { results <- r.send(context.Background(), way, request) }
		for range 2 {
			go sendOne(large)
			<-r.inside
		}
		for range 2 {
			checkRetryable(t, way, r.send(t.Context(), way, large), "requests.limit_mib of memory_budget is reached")
		}
		r.checkRefused(t, reasonMemory, 2)
		go sendOne(small)
		<-r.inside
		for range 3 {
			r.answers <- nil
			require.NoError(t, <-results)
		}
		r.checkNothingHeld(t)
		go sendOne(large)
		<-r.inside
		r.answers <- errors.New("no")
		require.Error(t, <-results)
	})
}

// The memory belongs to the request, not to its client: it is released when the receiver has
// noticed that the client has disconnected.
func TestMemoryOfACancelledRequestIsReleased(t *testing.T) {
	forEachWay(t, func(t *testing.T, way nested.Way) {
		r := startReceiver(t, nil)
		r.answers = make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error)
		request := emptySpans(t, 1000, way)
		go func() { result <- r.send(ctx, way, request) }()
		<-r.inside
		assert.Greater(t, r.requests().account.Used(), int64(200_000))
		cancel()
		require.Error(t, <-result)
		r.checkNothingHeld(t)
	})
}

func TestOneAddressHasHalfOfTheOpenRequests(t *testing.T) {
	forEachWay(t, func(t *testing.T, way nested.Way) {
		r := startReceiver(t, func(c *RequestsConfig) { c.MaxOpen = 6 })
		r.answers = make(chan error)
		request := emptySpans(t, 1, way)
		results := make(chan error, 3)
		for range 3 {
			go func() { results <- r.send(context.Background(), way, request) }()
			<-r.inside
		}
		checkRetryable(t, way, r.send(t.Context(), way, request), "requests.max_open")
		r.checkRefused(t, reasonOpen, 1)
		leave, refused := r.requests().enter("192.0.2.1:5")
		require.Nil(t, refused)
		leave()
		leave()
		for range 3 {
			r.answers <- nil
			require.NoError(t, <-results)
		}
	})
}

// A request that never arrives ends, and releases its place.
func TestARequestThatDoesNotArriveEnds(t *testing.T) {
	t.Run("HTTP", func(t *testing.T) {
		r := startReceiver(t, func(c *RequestsConfig) { c.ReadTimeout = 50 * time.Millisecond })
		c, err := net.Dial("tcp", r.http)
		require.NoError(t, err)
		defer c.Close()
		_, err = io.WriteString(c, "POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Length: 1000000\r\n\r\nabc")
		require.NoError(t, err)
		answer, _ := io.ReadAll(c)
		assert.True(t, bytes.HasPrefix(answer, []byte("HTTP/1.1 400")), "%s", answer)
		r.checkNothingHeld(t)
	})
	t.Run("gRPC", func(t *testing.T) {
		r := startReceiver(t, func(c *RequestsConfig) { c.ReadTimeout = 50 * time.Millisecond })
		connection, err := grpc.NewClient("passthrough:///"+r.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		defer connection.Close()
		stream, err := connection.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, "/opentelemetry.proto.collector.trace.v1.TraceService/Export")
		require.NoError(t, err)
		require.Error(t, stream.RecvMsg(&emptypb.Empty{}))
		r.checkNothingHeld(t)
	})
}

// A call that has no handler is counted off at the end of its stream.
func TestACallOfAnUnknownMethodReleasesItsPlace(t *testing.T) {
	r := startReceiver(t, nil)
	err := nested.Send(t.Context(), nested.GRPC, r.grpc, nested.Logs, nil)
	require.Equal(t, codes.Unimplemented, status.Code(err))
	r.checkNothingHeld(t)
}

// Bodies at other paths are judged as the worst of all signals.
func TestOtherPathsAreJudged(t *testing.T) {
	deep, _ := nested.Protobuf(nested.At(nested.Metrics, "metadata"), nested.Lists, 4000, nil)
	size, err := walkOf(typeProtobuf, "/mine")(deep, 10)
	require.Error(t, err)
	assert.Equal(t, 11, size.Depth)
	size, err = walkOf(typeProtobuf, "/mine")(emptySpans(t, 1000, nested.HTTP), 10)
	require.NoError(t, err)
	assert.Greater(t, size.Bytes, 200_000)
}

func TestOtherRequestsThanOTLPArePassedOn(t *testing.T) {
	r := startReceiver(t, nil)
	answer, err := http.Post("http://"+r.http+"/v1/traces", "text/plain", bytes.NewReader([]byte("\x0a\x05")))
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	assert.Contains(t, string(text), "EOF") // the decoder's words
}
