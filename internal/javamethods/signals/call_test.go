// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/session"
)

// recorded returns a recorded call without a package in its class.
func recorded(index int64, second int) *javamethods.Record {
	return &javamethods.Record{
		Index: index, Time: time.Date(2026, 11, 20, 9, 12, second, 0, time.UTC), Cost: ms(10),
		Returned: true, Class: "Shop", Method: "checkout", IsSimple: true,
	}
}

func TestTheSameRecordedCallHasTheSameIDs(t *testing.T) {
	origin := func(pid int64) *Origin {
		of := Server{Tracer: "greys", Endpoint: "localhost:3658"}
		return of.Origin(pcommon.NewResource(), session.Identity{PID: pid}, time.Now())
	}
	span := func(of *Origin, r *javamethods.Record, detail *javamethods.RecordDetail) string {
		p := callSpan(of, &session.Call{Record: *r, Received: time.Now(), Detail: detail})
		return p.trace.String() + p.spans[0].id.String()
	}
	detail := &javamethods.RecordDetail{Record: *recorded(1, 1)}
	detail.Class = "demo.Shop"
	first := span(origin(1), recorded(1, 1), nil)
	assert.Equal(t, first, span(origin(1), recorded(1, 1), detail))
	assert.NotEqual(t, first, span(origin(2), recorded(1, 1), nil))
	assert.NotEqual(t, first, span(origin(1), recorded(2, 1), nil))
	assert.NotEqual(t, first, span(origin(1), recorded(1, 2), nil))
	other := recorded(1, 1)
	other.Method = "price"
	assert.NotEqual(t, first, span(origin(1), other, nil), "the server was restarted and counts from the beginning")
}

func TestInvalidTimesOfRecordedCallsAreReplacedByTheTimeOfReceipt(t *testing.T) {
	for _, at := range []time.Time{{}, time.Unix(0, 0), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		r := recorded(1, 1)
		r.Time, r.Cost = at, 0
		p := callSpan(&Origin{}, &session.Call{Record: *r, Received: receivedAt})
		assert.Equal(t, receivedAt.UnixNano(), p.spans[0].end)
		assert.EqualValues(t, 1, p.spans[0].end-p.spans[0].start, "no span is empty")
	}
}

func TestTheTextOfAnExceptionIsParsed(t *testing.T) {
	for of, want := range map[string]exception{
		"java.lang.Error":                {kind: "java.lang.Error"},
		"java.lang.Error: a: b":          {kind: "java.lang.Error", message: "a: b"},
		"java.lang.Error: a\r\n\tat x.y": {kind: "java.lang.Error", message: "a", stack: "java.lang.Error: a\r\n\tat x.y"},
		`{"detailMessage":"test"}`:       {message: `{"detailMessage":"test"}`},
		"Something went wrong.":          {message: "Something went wrong."},
		"null":                           {message: "null"},
		"":                               {},
	} {
		want.happened = true
		assert.Equal(t, want, newException(of), of)
	}
}
