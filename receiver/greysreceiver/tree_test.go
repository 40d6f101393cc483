// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/javamethods"
)

var receivedAt = time.Date(2026, 11, 20, 9, 12, 30, 0, time.UTC)

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func TestCallsBeyondTheLimitOfATreeAreLeftOutAndCounted(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Traces = []CallsConfig{some("a", "b", 0)}
		c.Limits.MaxTreeNodes = 2
	})
	s := script(t, b, ProtocolConsole)
	b.start()
	s.next().answer(&javamethods.Tree{Nodes: []javamethods.Node{{End: 1}, {Depth: 1}, {Depth: 2}, {Depth: 1}, {Depth: 1}}})
	b.Shutdown()
	assert.Len(t, b.Spans(), 2)
	assert.EqualValues(t, 3, b.point("nodes_dropped"))
}

func TestSpansOfATreeHaveTheirAttributes(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Traces = []CallsConfig{some("a", "b", 0)} })
	s := script(t, b, ProtocolConsole)
	b.receiver.env.Now = func() time.Time { return receivedAt }
	b.start()
	s.next().answer(&javamethods.Tree{Thread: javamethods.Thread{Name: "main", ID: 7}, Nodes: []javamethods.Node{
		{End: ms(5), Class: "demo.Shop", Method: "checkout"},
		{Depth: 1, End: ms(5), Class: "demo.Pay", Method: "charge\xff", Line: 10, Throws: "demo.Declined"},
	}})
	b.Shutdown()
	spans := b.Spans()
	require.Len(t, spans, 2)
	assert.Equal(t, "Shop.checkout", spans[0].Name())
	assert.Equal(t, map[string]any{"code.function.name": "demo.Shop.checkout", "thread.name": "main", "thread.id": int64(7)}, spans[0].Attributes().AsRaw())
	assert.Zero(t, spans[0].Status().Code())
	assert.Zero(t, spans[0].Events().Len())
	assert.Equal(t, "Pay.charge\uFFFD", spans[1].Name())
	assert.Equal(t, map[string]any{
		"code.function.name": "demo.Pay.charge\uFFFD", "thread.name": "main", "thread.id": int64(7), "code.line.number": int64(10),
		"error.type": "demo.Declined",
	}, spans[1].Attributes().AsRaw())
	assert.Equal(t, "Error", spans[1].Status().Code().String())
	require.Equal(t, 1, spans[1].Events().Len())
	event := spans[1].Events().At(0)
	assert.Equal(t, "exception", event.Name())
	assert.Equal(t, map[string]any{"exception.type": "demo.Declined"}, event.Attributes().AsRaw())
	assert.Equal(t, spans[1].EndTimestamp(), event.Timestamp())
	assert.Equal(t, spans[0].TraceID(), spans[1].TraceID())
}
