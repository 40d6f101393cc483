// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package nesting_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/componentkit/nesting"
)

// example returns traces with a flat attribute in each place, and those places.
func example() (td ptrace.Traces, places map[string]pcommon.Map) {
	td = ptrace.NewTraces()
	td.ResourceSpans().AppendEmpty() // has nothing
	rs := td.ResourceSpans().AppendEmpty()
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName("lib")
	ss.Spans().AppendEmpty() // has nothing
	span := ss.Spans().AppendEmpty()
	span.SetName("GET /")
	places = map[string]pcommon.Map{
		"resource": rs.Resource().Attributes(), "scope": ss.Scope().Attributes(), "span": span.Attributes(),
		"event": span.Events().AppendEmpty().Attributes(), "link": span.Links().AppendEmpty().Attributes(),
	}
	for _, attributes := range places {
		attributes.PutStr("text", "t")
		attributes.PutInt("number", 1)
		attributes.PutEmpty("nothing")
		attributes.PutEmptyBytes("bytes")
	}
	return td, places
}

func TestTheErrorNamesAnAttributeThatIsTooDeep(t *testing.T) {
	for place, want := range map[string]string{
		"resource": `attribute "k" of a resource: expected at most 2 levels of lists and maps, got more`,
		"scope":    `attribute "k" of scope "lib": expected at most 2 levels of lists and maps, got more`,
		"span":     `attribute "k" of span "GET /" in scope "lib": expected at most 2 levels of lists and maps, got more`,
		"event":    `attribute "k" of an event of span "GET /" in scope "lib": expected at most 2 levels of lists and maps, got more`,
		"link":     `attribute "k" of a link of span "GET /" in scope "lib": expected at most 2 levels of lists and maps, got more`,
	} {
		for shape, put := range map[string]func(pcommon.Map, int){"lists": lists, "maps": maps, "the last of many": last} {
			t.Run(place+" "+shape, func(t *testing.T) {
				td, places := example()
				require.NoError(t, nesting.Traces(td, 1), "flat attributes")
				put(places[place], 2)
				require.NoError(t, nesting.Traces(td, 2))
				require.Error(t, nesting.Traces(td, 1))
				td, places = example()
				put(places[place], 3)
				var e *nesting.Error
				require.ErrorAs(t, nesting.Traces(td, 2), &e)
				assert.Equal(t, place, e.Place)
				assert.EqualError(t, e, want)
			})
		}
	}
}

func lists(attributes pcommon.Map, levels int) {
	v := attributes.PutEmpty("k")
	for range levels {
		v = v.SetEmptySlice().AppendEmpty()
	}
}

func maps(attributes pcommon.Map, levels int) {
	v := attributes.PutEmpty("k")
	for range levels {
		v = v.SetEmptyMap().PutEmpty("")
	}
}

// last has its depth in the last element of each list and map.
func last(attributes pcommon.Map, levels int) {
	v := attributes.PutEmpty("k")
	for level := range levels {
		if level%2 == 0 {
			list := v.SetEmptySlice()
			list.AppendEmpty().SetStr("before")
			list.AppendEmpty().SetEmptySlice()
			if level == levels-1 {
				list.At(1).SetInt(1)
			}
			v = list.AppendEmpty()
		} else {
			m := v.SetEmptyMap()
			m.PutBool("before", true)
			v = m.PutEmpty("z")
		}
	}
}

func TestTextsInErrorsAreCut(t *testing.T) {
	td, places := example()
	long := strings.Repeat("é", 1<<20)
	span := td.ResourceSpans().At(1).ScopeSpans().At(0).Spans().At(1)
	span.SetName(long)
	td.ResourceSpans().At(1).ScopeSpans().At(0).Scope().SetName(long)
	places["link"].PutEmptySlice(long).AppendEmpty().SetEmptyMap()
	err := nesting.Traces(td, 1)
	require.Error(t, err)
	assert.Less(t, len(err.Error()), 600)
}

func TestCut(t *testing.T) {
	assert.Equal(t, strings.Repeat("x", nesting.MaxText), nesting.Cut(strings.Repeat("x", nesting.MaxText)))
	assert.Equal(t, strings.Repeat("x", nesting.MaxText)+"…", nesting.Cut(strings.Repeat("x", nesting.MaxText+1)))
	assert.True(t, utf8.ValidString(nesting.Cut("x"+strings.Repeat("é", nesting.MaxText))))
}

// BenchmarkTraces measures the check for each span of an ordinary program.
func BenchmarkTraces(b *testing.B) {
	const spans = 512
	td := ptrace.NewTraces()
	ss := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	for range spans {
		attributes := ss.Spans().AppendEmpty().Attributes()
		for _, key := range []string{"code.function.name", "thread.name", "http.route", "url.path", "server.address"} {
			attributes.PutStr(key, "value")
		}
		attributes.PutInt("thread.id", 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := nesting.Traces(td, 32); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/spans, "ns/span")
}
