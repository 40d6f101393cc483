// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/testkit/nested"
)

// nestedTraces returns traces that have an attribute with a number of levels at a place.
func nestedTraces(levels int, place func(ptrace.Traces) pcommon.Map) ptrace.Traces {
	td := ptrace.NewTraces()
	nest(place(td), levels)
	return td
}

// nest adds an attribute with a number of levels, lists and maps in turn.
func nest(attributes pcommon.Map, levels int) {
	v := attributes.PutEmpty("deep")
	for level := range levels {
		if level%2 == 0 {
			v = v.SetEmptySlice().AppendEmpty()
		} else {
			v = v.SetEmptyMap().PutEmpty("below")
		}
	}
}

// places are all places of attributes in a hand-over with a batch and another span.
var places = map[string]func(batch, other ptrace.ResourceSpans) pcommon.Map{
	"the resource of a batch": func(batch, _ ptrace.ResourceSpans) pcommon.Map { return batch.Resource().Attributes() },
	"the scope of a batch": func(batch, _ ptrace.ResourceSpans) pcommon.Map {
		return batch.ScopeSpans().At(0).Scope().Attributes()
	},
	"the span of a batch": func(batch, _ ptrace.ResourceSpans) pcommon.Map {
		return batch.ScopeSpans().At(0).Spans().At(0).Attributes()
	},
	"the resource of another span": func(_, other ptrace.ResourceSpans) pcommon.Map { return other.Resource().Attributes() },
	"another span": func(_, other ptrace.ResourceSpans) pcommon.Map {
		return other.ScopeSpans().At(0).Spans().At(0).Attributes()
	},
	"an event of another span": func(_, other ptrace.ResourceSpans) pcommon.Map {
		return other.ScopeSpans().At(0).Spans().At(0).Events().AppendEmpty().Attributes()
	},
	"a link of another span": func(_, other ptrace.ResourceSpans) pcommon.Map {
		return other.ScopeSpans().At(0).Spans().At(0).Links().AppendEmpty().Attributes()
	},
}

// A hand-over with an attribute that is nested too deep is refused permanently and completely. One
// level less is accepted.
func TestAHandOverThatIsNestedTooDeepIsRefusedCompletely(t *testing.T) {
	for where, place := range places {
		t.Run(where, func(t *testing.T) {
			b := newBed(t, func(c *Config) { c.Limits.MaxAttributeDepth = 5 })
			handOver := func(levels int) error {
				td := traces(t, call(1, "f", 0), call(2, "g", 0))
				ordinary(td, "cart")
				nest(place(td.ResourceSpans().At(0), td.ResourceSpans().At(2)), levels)
				return b.ConsumeTraces(context.Background(), td)
			}
			err := handOver(6)
			require.ErrorContains(t, err, "expected at most 5 levels of lists and maps, got more")
			require.ErrorContains(t, err, `attribute "deep" of`)
			require.ErrorContains(t, err, "raise limits.max_attribute_depth")
			assert.True(t, consumererror.IsPermanent(err), "a repetition would give the same error")
			assert.EqualValues(t, 1, b.sum("nested_calls"))
			assert.Zero(t, b.sum("batches"))
			assert.Empty(t, b.next.accepted())

			require.NoError(t, handOver(5))
			assert.ElementsMatch(t, []string{"web/cart", "s1/f 0", "s2/g 0"}, b.next.accepted())
			b.finish()
		})
	}
}

// Hostile clients do not fill the log. It has one line for each burst of their hand-overs, with the
// client's address and with cut names.
func TestRefusedNestingIsLoggedOnceWithThePeer(t *testing.T) {
	b := newBed(t)
	ctx := client.NewContext(context.Background(), client.Info{Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9), Port: 4711}})
	for range 100 {
		require.Error(t, b.ConsumeTraces(ctx, nestedTraces(33, func(td ptrace.Traces) pcommon.Map {
			ss := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
			ss.Scope().SetName(strings.Repeat("s", 1<<20))
			span := ss.Spans().AppendEmpty()
			span.SetName(strings.Repeat("n", 1<<20))
			return span.Attributes()
		})))
	}
	lines := b.logs.FilterMessageSnippet("nested too deep").All()
	require.Len(t, lines, 1)
	assert.Equal(t, "127.0.0.9:4711", lines[0].ContextMap()["peer"])
	assert.Less(t, len(lines[0].ContextMap()["error"].(string)), 1000)
	assert.EqualValues(t, 100, b.sum("nested_calls"))
	b.finish()
}

// The line about an unreadable batch has the names of its program, cut, and nothing else of its
// resource.
func TestABatchThatCannotBeReadIsLoggedBriefly(t *testing.T) {
	b := newBed(t)
	td := traces(t, batch{stream: 1, service: strings.Repeat("x", 1<<20), adjust: func(span ptrace.Span) {
		span.Attributes().PutInt(callevent.AttributeVersion, 99)
	}})
	resource := td.ResourceSpans().At(0).Resource().Attributes()
	resource.PutStr("service.instance.id", "i-1")
	resource.PutStr("other", strings.Repeat("y", 1<<20))
	ctx := client.NewContext(context.Background(), client.Info{Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9), Port: 4711}})
	require.NoError(t, b.ConsumeTraces(ctx, td))
	lines := b.logs.FilterMessageSnippet("cannot be read").All()
	require.Len(t, lines, 1)
	assert.Equal(t, map[string]any{
		"peer":                "127.0.0.9:4711",
		"service.name":        strings.Repeat("x", 128) + "…",
		"service.instance.id": "i-1",
		"error":               "call event batch: expected format version 1, got 99",
	}, lines[0].ContextMap())
	b.finish()
}

// The line leaves out a service name that is no text.
func TestAServiceNameThatIsNoTextIsNotLogged(t *testing.T) {
	b := newBed(t)
	td := traces(t, batch{stream: 1, adjust: func(span ptrace.Span) { span.Attributes().PutInt(callevent.AttributeVersion, 99) }})
	nest(td.ResourceSpans().At(0).Resource().Attributes().PutEmptyMap("service.name"), 20)
	require.NoError(t, b.ConsumeTraces(context.Background(), td))
	lines := b.logs.FilterMessageSnippet("cannot be read").All()
	require.Len(t, lines, 1)
	assert.NotContains(t, lines[0].ContextMap(), "service.name")
	b.finish()
}

// Half a million levels take no more stack than the bound allows.
func TestHalfAMillionLevelsAreRefused(t *testing.T) {
	for _, kind := range []nested.Kind{nested.Lists, nested.Maps} {
		request, levels := nested.Protobuf(nested.At(nested.Traces, "resource"), kind, 4<<20, nil)
		require.Greater(t, levels, 300_000)
		read := ptraceotlp.NewExportRequest()
		require.NoError(t, read.UnmarshalProto(request))
		b := newBed(t)
		require.True(t, consumererror.IsPermanent(b.ConsumeTraces(context.Background(), read.Traces())))
		b.finish()
	}
}
