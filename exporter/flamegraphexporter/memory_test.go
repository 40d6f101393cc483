// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/budget/budgettest"
	"github.com/callbraid/callbraid/internal/testkit"
)

func onAnyPort(c *Config) { c.NetAddr.Endpoint = "localhost:0" }

// budgetFor starts the exporter with a memory budget of so many MiB.
func budgetFor(t *testing.T, b *bed, mib int64) *budget.Budget {
	t.Helper()
	all := budget.New(mib << 20)
	t.Cleanup(all.Stop)
	require.NoError(t, b.Start(t.Context(), budgettest.Host(componenttest.NewNopHost(), all)))
	return all
}

func (b *bed) fold(service string, from, to int) {
	for i := from; i < to; i++ {
		span := calltree.Span{Trace: calltree.TraceID{1}, ID: [8]byte(numbered(i + 1)), Function: fmt.Sprint(service, " function ", i), Start: 1, End: 2}
		b.store.Fold(calltree.Origin{Service: service}, []calltree.Span{span})
	}
}

// If another component needs memory, the largest service is folded. A small one beside it stays
// complete, and kept windows are dropped first.
func TestTheMemoryBudgetHasTheLargestServiceFolded(t *testing.T) {
	b := newBed(t, onAnyPort)
	core, said := observer.New(zapcore.WarnLevel)
	b.set.Logger = zap.New(core)
	all := budgetFor(t, b, 16)
	b.fold("honest", 0, 1000)
	r, err := client.PostForm("http://"+b.server.address.String()+"/windows", url.Values{"service": {"honest"}, "seconds": {"1"}})
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.Equal(t, http.StatusOK, r.StatusCode)
	b.fold("hostile", 1000, 20_000)
	require.Greater(t, all.Used(), int64(5<<20))
	require.Zero(t, b.sum(t, "shed"))

	receiver := all.Group("bytefrog").Open(budget.Settings{Leave: func(why *budget.Error) { t.Error(why) }})
	require.NoError(t, receiver.Reserve(8<<20), "the trees hold less than half, and there is room")
	b.fold("hostile", 20_000, 60_000)
	testkit.Eventually(t, "memory", func() (bool, string) { return all.Used() <= all.Limit(), fmt.Sprint(all.Used()) })
	assert.Positive(t, b.store.Counters().Shed.Paths)
	assert.EqualValues(t, 1, b.server.handler.Load().ShedWindows())
	assert.Positive(t, b.sum(t, "shed"))
	honest, _ := b.store.Snapshot("honest", calltree.Calls)
	assert.Len(t, honest.Nodes, 1000)
	b.logBounds()
	assert.Equal(t, 1, said.FilterMessageSnippet("The memory budget requested memory").Len())

	require.NoError(t, receiver.Reserve(1<<20), "no spans arrive: the budget demands it")
	receiver.Close()
	require.NoError(t, b.Shutdown(t.Context()))
	assert.Zero(t, all.Used(), "all memory is free")
}

// The budget can demand memory while no data arrives.
func TestTreesFreeMemoryWhileNoDataArrives(t *testing.T) {
	b := newBed(t, onAnyPort)
	all := budgetFor(t, b, 16)
	b.fold("hostile", 0, 60_000)
	before := all.Used()
	require.Greater(t, before, int64(9<<20))
	receiver := all.Group("bytefrog").Open(budget.Settings{Leave: func(why *budget.Error) { t.Error(why) }})
	defer receiver.Close()
	for range 8 {
		require.NoError(t, receiver.Reserve(1<<20))
	}
	testkit.Eventually(t, "memory", func() (bool, string) { return all.Used() <= all.Limit(), fmt.Sprint(all.Used()) })
	assert.LessOrEqual(t, b.sum(t, "memory"), all.Limit()-8<<20)
}

// Other data is not evicted for a page: without free memory the page is refused with an error.
func TestAPageWithoutFreeMemoryIsRefused(t *testing.T) {
	b := newBed(t, onAnyPort)
	all := budgetFor(t, b, 32)
	b.fold("shop", 0, 1000)
	address := "http://" + b.server.address.String()
	paths := []string{"/", "/services/shop/", "/services/shop/ui/flamegraph", "/services/shop/profile.pb.gz", "/services/shop/profile.folded?seconds=1",
		"/traces/01000000000000000000000000000000.speedscope.json"}
	for _, path := range paths {
		status, text := get(t, address+path)
		require.Equal(t, http.StatusOK, status, "%s: %s", path, text)
	}
	testkit.Eventually(t, "memory to be free", func() (bool, string) { return all.Used() < 4<<20, fmt.Sprint(all.Used()) })
	receiver := all.Group("bytefrog").Open(budget.Settings{Leave: func(why *budget.Error) { t.Error(why) }})
	defer receiver.Close()
	require.NoError(t, receiver.Reserve(int(all.Limit()-all.Used())))
	for i, path := range paths {
		status, text := get(t, address+path)
		assert.Equal(t, http.StatusServiceUnavailable, status, "%s: %s", path, text)
		assert.Contains(t, text, "raise limit_mib of the extension memory_budget", path)
		assert.EqualValues(t, i+1, b.sum(t, "refused_pages"))
	}
	assert.Zero(t, b.store.Counters().Shed, "no tree is folded for a page")
}

func TestReplacedServicesAreAMetric(t *testing.T) {
	b := newBed(t)
	now, settings := time.Unix(1_700_000_000, 0), b.config.settings()
	settings.MaxServices, settings.Now = 1, func() time.Time { return now }
	b.store = calltree.NewStore(settings)
	b.fold("weak", 0, 1)
	for i := range 3 {
		now = now.Add(time.Second)
		b.fold("strong", 1+i, 2+i)
	}
	assert.EqualValues(t, 1, b.sum(t, "yielded_services"))
	assert.EqualValues(t, 2, b.sum(t, "other_services"))
}

// A peer can invent services. The memory of each is bounded, and the decoded request is free.
func TestASpanOfAnotherServiceTakesUpTo300Bytes(t *testing.T) {
	const services, ofRequest, most = 50_000, 500, 300
	b := newBed(t, onAnyPort)
	before := heap()
	for sent := 0; sent < services; sent += ofRequest {
		td := ptrace.NewTraces()
		for i := sent; i < sent+ofRequest; i++ {
			rs := td.ResourceSpans().AppendEmpty()
			rs.Resource().Attributes().PutStr("service.name", fmt.Sprint("service ", i))
			span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
			span.SetTraceID(pcommon.TraceID{15: 1, 8: byte(i >> 16), 9: byte(i >> 8), 10: byte(i)})
			span.SetSpanID(pcommon.SpanID(numbered(i + 1)))
			span.SetName("function")
		}
		require.NoError(t, b.consumeTraces(t.Context(), td))
	}
	grown := int64(heap()) - int64(before)
	t.Logf("%d bytes for each service", grown/services)
	assert.Less(t, grown/services, int64(most))
	assert.EqualValues(t, services, b.store.Counters().Spans)
}
