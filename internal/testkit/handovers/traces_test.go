// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handovers_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/testkit/handovers"
)

func TestAScriptMakesItsTraces(t *testing.T) {
	td := handovers.Traces(slices.Concat(
		[]byte{handovers.StepResource, handovers.StepScope, handovers.StepSpan, 0x21, handovers.StepBatch, 7},
		[]byte{handovers.StepResource},
		handovers.Attribute(handovers.InResource, 2, handovers.TypeText, 1),
		handovers.Attribute(handovers.InLink, 1, handovers.TypeLists, 60),
		handovers.Attribute(handovers.InEvent, 0, handovers.TypeWide, 2),
	), []string{"service.name"}, func(span ptrace.Span, n byte) { span.SetDroppedLinksCount(uint32(n)) })
	first, second := td.ResourceSpans().At(0), td.ResourceSpans().At(1)
	spans := first.ScopeSpans().At(0).Spans()
	assert.Equal(t, 2, spans.Len())
	assert.Equal(t, handovers.SpanName, spans.At(0).Name())
	assert.EqualValues(t, [8]byte{1}, spans.At(0).SpanID())
	assert.EqualValues(t, [8]byte{2}, spans.At(0).ParentSpanID())
	assert.EqualValues(t, 7, spans.At(1).DroppedLinksCount())
	assert.Equal(t, map[string]any{"service.name": "text"}, second.Resource().Attributes().AsRaw())
	span := second.ScopeSpans().At(0).Spans().At(0)
	assert.Equal(t, 60, handovers.Levels(td))
	assert.Equal(t, map[string]any{"": []any{map[string]any{"n": int64(1)}, map[string]any{"n": int64(1)}}}, span.Events().At(0).Attributes().AsRaw())
}
