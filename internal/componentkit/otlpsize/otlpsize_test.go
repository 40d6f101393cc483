// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package otlpsize_test

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/callbraid/callbraid/internal/componentkit/nesting"
	"github.com/callbraid/callbraid/internal/componentkit/otlpsize"
	"github.com/callbraid/callbraid/internal/testkit/nested"
)

// decoded is a request of any signal.
type decoded interface {
	UnmarshalProto([]byte) error
	UnmarshalJSON([]byte) error
	MarshalProto() ([]byte, error)
	MarshalJSON() ([]byte, error)
}

var requests = map[nested.Signal]otlpsize.Message{
	nested.Traces: otlpsize.Traces, nested.Logs: otlpsize.Logs, nested.Metrics: otlpsize.Metrics, nested.Profiles: otlpsize.Profiles,
}

// of returns an empty request, a function that checks its depth, and one that counts its elements.
func of(signal nested.Signal) (request decoded, deeper func(most int) error, elements func() int) {
	switch signal {
	case nested.Traces:
		r := ptraceotlp.NewExportRequest()
		return r, func(most int) error { return nesting.Traces(r.Traces(), most) }, func() int { return r.Traces().SpanCount() }
	case nested.Logs:
		r := plogotlp.NewExportRequest()
		return r, func(most int) error { return nesting.Logs(r.Logs(), most) }, func() int { return r.Logs().LogRecordCount() }
	case nested.Metrics:
		r := pmetricotlp.NewExportRequest()
		return r, func(most int) error { return nesting.Metrics(r.Metrics(), most) }, func() int { return r.Metrics().DataPointCount() }
	default:
		r := pprofileotlp.NewExportRequest()
		return r, func(most int) error { return nesting.Profiles(r.Profiles(), most) }, func() int { return r.Profiles().SampleCount() }
	}
}

func TestTheDepthIsThatOfTheRequest(t *testing.T) {
	for _, at := range nested.Places() {
		for _, kind := range []nested.Kind{nested.Lists, nested.Maps} {
			t.Run(fmt.Sprint(at.Signal, " ", at.Name, " ", kind), func(t *testing.T) {
				request, levels := nested.Protobuf(at, kind, 4000, nil)
				size, err := otlpsize.Protobuf(requests[at.Signal], request, levels)
				require.NoError(t, err)
				assert.Equal(t, levels, size.Depth)
				_, err = otlpsize.Protobuf(requests[at.Signal], request, levels-1)
				require.ErrorIs(t, err, otlpsize.ErrDepth)

				request, levels = nested.JSON(at, kind, 4000)
				_, err = otlpsize.JSON(request, levels)
				require.NoError(t, err)
				_, err = otlpsize.JSON(request, levels/2)
				require.ErrorIs(t, err, otlpsize.ErrDepth)
			})
		}
	}
}

// wide returns a request that repeats the message at the end of path, empty or with content.
func wide(times int, content string, path ...byte) []byte {
	one := append([]byte{path[len(path)-1]<<3 | 2, byte(len(content))}, content...)
	request := bytes.Repeat(one, times)
	for i := len(path) - 2; i >= 0; i-- {
		n, head := len(request), []byte{path[i]<<3 | 2}
		for ; n >= 0x80; n >>= 7 {
			head = append(head, byte(n)|0x80)
		}
		request = append(append(head, byte(n)), request...)
	}
	return request
}

func repeatedly[T any](n int, one func(i int) T) {
	for i := range n {
		one(i)
	}
}

// spans returns a request of an ordinary instrumented service.
func spans(n int) []byte {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "shop")
	ss := rs.ScopeSpans().AppendEmpty()
	repeatedly(n, func(i int) ptrace.Span {
		span := ss.Spans().AppendEmpty()
		span.SetName("GET /articles/{id}")
		span.SetTraceID(pcommon.TraceID{byte(i), 1, 2, 3})
		span.SetSpanID(pcommon.SpanID{byte(i), 1})
		span.SetStartTimestamp(1700000000000000000)
		span.SetEndTimestamp(1700000000000001000)
		span.Attributes().PutStr("http.request.method", "GET")
		span.Attributes().PutStr("url.path", fmt.Sprint("/articles/", i))
		span.Attributes().PutInt("http.response.status_code", 200)
		span.Attributes().PutStr("server.address", "shop.example.com")
		span.Attributes().PutBool("cached", i%2 == 0)
		return span
	})
	body, _ := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
	return body
}

// The real size of the decoded request is the growth of the heap.
func TestTheEstimateIsCloseToTheGrowthOfTheHeap(t *testing.T) {
	texts := string([]byte{3<<3 | 2, 4}) + "abcd"
	for name, c := range map[string]struct {
		signal  nested.Signal
		request []byte
	}{
		"spans of a service":           {nested.Traces, spans(5000)},
		"empty resources":              {nested.Traces, wide(100000, "", 1)},
		"empty scopes":                 {nested.Traces, wide(100000, "", 1, 2)},
		"empty spans":                  {nested.Traces, wide(100000, "", 1, 2, 2)},
		"spans with a text":            {nested.Traces, wide(100000, texts, 1, 2, 2)},
		"empty events":                 {nested.Traces, wide(100000, "", 1, 2, 2, 11)},
		"empty links":                  {nested.Traces, wide(100000, "", 1, 2, 2, 13)},
		"empty attributes":             {nested.Traces, wide(100000, "", 1, 2, 2, 9)},
		"257 attributes":               {nested.Traces, bytes.Repeat(wide(257, "", 1, 2, 2, 9), 300)},
		"9 attributes":                 {nested.Traces, bytes.Repeat(wide(9, "", 1, 2, 2, 9), 3000)},
		"attributes that are false":    {nested.Traces, wide(100000, string([]byte{2<<3 | 2, 2, 2 << 3, 0}), 1, 2, 2, 9)},
		"empty values in a list":       {nested.Traces, wide(100000, "", 1, 2, 2, 9, 2, 5, 1)},
		"empty lists in a list":        {nested.Traces, wide(100000, string([]byte{5<<3 | 2, 0}), 1, 2, 2, 9, 2, 5, 1)},
		"empty entities":               {nested.Traces, wide(100000, "", 1, 1, 3)},
		"empty keys of an entity":      {nested.Traces, wide(100000, "", 1, 1, 3, 3)},
		"empty log records":            {nested.Logs, wide(100000, "", 1, 2, 2)},
		"empty metrics":                {nested.Metrics, wide(100000, "", 1, 2, 2)},
		"empty gauges":                 {nested.Metrics, wide(100000, string([]byte{5<<3 | 2, 0}), 1, 2, 2)},
		"empty points":                 {nested.Metrics, wide(100000, "", 1, 2, 2, 5, 1)},
		"empty histograms":             {nested.Metrics, wide(100000, "", 1, 2, 2, 9, 1)},
		"empty exponential histograms": {nested.Metrics, wide(100000, "", 1, 2, 2, 10, 1)},
		"empty summaries":              {nested.Metrics, wide(100000, "", 1, 2, 2, 11, 1)},
		"empty quantiles":              {nested.Metrics, wide(100000, "", 1, 2, 2, 11, 1, 6)},
		"empty exemplars":              {nested.Metrics, wide(100000, "", 1, 2, 2, 5, 1, 5)},
		"packed buckets":               {nested.Metrics, wide(1, strings.Repeat("\x01", 120), 1, 2, 2, 10, 1, 8, 2)},
		"many packed buckets":          {nested.Metrics, wide(1000, strings.Repeat("\x01", 120), 1, 2, 2, 10, 1, 8, 2)},
		"bounds":                       {nested.Metrics, bytes.Repeat(wide(1, strings.Repeat("\x01", 120), 1, 2, 2, 9, 1, 7), 1000)},
		"empty profiles":               {nested.Profiles, wide(100000, "", 1, 2, 2)},
		"empty samples":                {nested.Profiles, wide(100000, "", 1, 2, 2, 2)},
		"empty texts of a table":       {nested.Profiles, wide(100000, "", 2, 5)},
		"mappings":                     {nested.Profiles, wide(100000, "", 2, 1)},
		"locations":                    {nested.Profiles, wide(100000, "", 2, 2)},
		"lines":                        {nested.Profiles, wide(100000, "", 2, 2, 3)},
		"functions":                    {nested.Profiles, wide(100000, "", 2, 3)},
		"links of profiles":            {nested.Profiles, wide(100000, "", 2, 4)},
		"attributes of profiles":       {nested.Profiles, wide(100000, "", 2, 6)},
		"stacks":                       {nested.Profiles, wide(100000, "", 2, 7)},
		"locations of a stack":         {nested.Profiles, wide(1000, strings.Repeat("\x01", 120), 2, 7, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			size, err := otlpsize.Protobuf(requests[c.signal], c.request, 32)
			require.NoError(t, err)
			request, _, elements := of(c.signal)
			before := heap()
			require.NoError(t, request.UnmarshalProto(c.request))
			truth := heap() - before
			assert.Equal(t, elements(), size.Elements)
			if truth > 64<<10 {
				assert.Greater(t, float64(size.Bytes), 0.8*float64(truth), "the request takes %d bytes", truth)
				assert.Less(t, float64(size.Bytes), 2*float64(truth), "the request takes %d bytes", truth)
			}

			asJSON, err := request.MarshalJSON()
			require.NoError(t, err)
			size, err = otlpsize.JSON(asJSON, 32)
			require.NoError(t, err)
			request, _, _ = of(c.signal)
			before = heap()
			require.NoError(t, request.UnmarshalJSON(asJSON))
			truth = heap() - before
			assert.Greater(t, float64(size.Bytes), 0.8*float64(truth), "the request takes %d bytes as JSON", truth)
			runtime.KeepAlive(request)
		})
	}
}

// heap returns the bytes in use.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func TestBrokenRequestsAreErrors(t *testing.T) {
	for name, request := range map[string]string{
		"a field without content":             "\x0a",
		"a field that is longer than request": "\x0a\x05\x00",
		"a message that is a number":          "\x08\x01",
		"field zero":                          "\x00\x01",
		"a number without end":                "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
		"a group without end":                 "\x7b",
		"an end without group":                "\x7c",
		"an unknown wire type":                "\x7e",
		"too few bytes of a number":           "\x79\x01",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := otlpsize.Protobuf(otlpsize.Traces, []byte(request), 32)
			malformed := &otlpsize.MalformedError{}
			require.ErrorAs(t, err, &malformed)
			require.Error(t, ptraceotlp.NewExportRequest().UnmarshalProto([]byte(request)))
		})
	}
}

func TestBracketsInTextsOfJSONAreNotCounted(t *testing.T) {
	body := `{"a":"` + strings.Repeat(`[{\"\\`, 1000) + `"}`
	size, err := otlpsize.JSON([]byte(body), 1)
	require.NoError(t, err)
	assert.Equal(t, 1, size.Depth)
}

func TestAWalkAllocatesNothing(t *testing.T) {
	request := spans(10)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		_, _ = otlpsize.Protobuf(otlpsize.Traces, request, 32)
		_, _ = otlpsize.JSON(request, 32)
	}))
}

// The walk agrees with the Collector's decoder: it refuses only what the decoder refuses, it finds
// no less than the decoder, and exactly as much in what the decoder writes.
func FuzzProtobuf(f *testing.F) {
	signals := []nested.Signal{nested.Traces, nested.Logs, nested.Metrics, nested.Profiles}
	for i, signal := range signals {
		for _, at := range nested.Places() {
			if at.Signal == signal {
				request, _ := nested.Protobuf(at, nested.Maps, 150, nil)
				f.Add(byte(i), request)
			}
		}
	}
	f.Add(byte(0), spans(2))
	f.Add(byte(2), wide(3, "\x08\x01", 1, 2, 2, 10, 1, 8))
	f.Add(byte(0), []byte("\x0a\x05\xc2\x3e\x02\x12\x00"))
	f.Fuzz(func(t *testing.T, which byte, body []byte) {
		const most = 50
		signal := signals[int(which)%len(signals)]
		size, err := otlpsize.Protobuf(requests[signal], body, most)
		_, _ = otlpsize.JSON(body, most)
		request, deeper, elements := of(signal)
		failed := request.UnmarshalProto(body)
		if malformed := (&otlpsize.MalformedError{}); errors.As(err, &malformed) {
			require.Error(t, failed, "the walk says %v", err)
			return
		}
		if failed != nil || err != nil {
			return
		}
		require.GreaterOrEqual(t, size.Elements, elements())
		require.NoError(t, deeper(size.Depth))
		again, err := request.MarshalProto()
		require.NoError(t, err)
		size, err = otlpsize.Protobuf(requests[signal], again, most)
		require.NoError(t, err)
		require.Equal(t, elements(), size.Elements)
		require.NoError(t, deeper(size.Depth))
		if size.Depth > 0 && !bytes.Contains(again, []byte{6<<3 | 2}) {
			require.Error(t, deeper(size.Depth-1))
		}
	})
}

func BenchmarkRequest(b *testing.B) {
	for name, request := range map[string][]byte{
		"spans of a service": spans(5000),
		"a batch of events":  wide(1, "", 1, 2, 2, 9),
	} {
		if strings.HasPrefix(name, "a batch") {
			td := ptrace.NewTraces()
			td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().Attributes().PutEmptyBytes("batch").FromRaw(make([]byte, 1<<20))
			request, _ = ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
		}
		b.Run("walk/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(request)))
			for b.Loop() {
				_, _ = otlpsize.Protobuf(otlpsize.Traces, request, 32)
			}
		})
		b.Run("decode/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(request)))
			for b.Loop() {
				_ = ptraceotlp.NewExportRequest().UnmarshalProto(request)
			}
		})
	}
}
