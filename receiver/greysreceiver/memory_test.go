// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/budget/budgettest"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/text"
)

// lineFull is the log line for a server that uses too much memory.
const lineFull = "Server disconnected for a while: its data takes too much memory. Its sums begin at zero"

// long returns a row of a method with a long name.
func long(i int) *javamethods.Statistics {
	return table(row(1, fmt.Sprint("demo.C", i, strings.Repeat("x", text.MaxShort-20)), "m", 1, 0, 0))
}

// counting returns a receiver that counts any number of methods of one server, and its memory budget.
func counting(t *testing.T, limit int64, set func(*Config)) (*bed, *scripted, *budget.Budget) {
	t.Helper()
	of := budget.New(limit)
	b := newBed(t, func(c *Config) {
		c.Monitors = []MonitorConfig{monitor("demo.*", "*")}
		c.Limits.MaxMethods, c.Limits.MaxMetricPoints = 100_000, 1_000_000
		set(c)
	})
	s := script(t, b, ProtocolConsole)
	b.Host = budgettest.Host(componenttest.NewNopHost(), of)
	b.start()
	return b, s, of
}

// fill sends answers until the server is disconnected.
func (b *bed) fill(a *pending) (methods int) {
	b.T.Helper()
	for ; b.Log.FilterMessageSnippet(lineFull).Len() == 0; methods++ {
		require.Less(b.T, methods, 50_000)
		select {
		case a.answers <- long(methods):
		case <-a.over:
			b.awaitLogged(lineFull)
		}
		select {
		case <-a.handled:
		case <-a.over:
		}
	}
	return methods
}

func TestAServerBeyondItsMemoryLimitIsReconnected(t *testing.T) {
	b, s, of := counting(t, 1<<30, func(c *Config) { c.Limits.MaxServerMemory = 4 * mib })
	a := s.next()
	a.answer(affectedOne)
	methods := b.fill(a)
	assert.Greater(t, methods, 4*mib/(text.MaxShort+350)/2)
	assert.Contains(t, b.awaitLogged(lineFull).ContextMap()["error"], "limits.max_server_memory is reached (4194304 bytes)")
	s.next().answer(affectedOne, table(row(1, "demo.Shop", "checkout", 5, 0, 0)))
	assert.Less(t, of.Used(), int64(mib))
	assert.Equal(t, map[string]float64{"demo.Shop.checkout": 5}, values(b.collect(), "java.method.calls"))
	assert.EqualValues(t, 1, b.point("servers_disconnected{reason=max_server_memory}"))
}

func TestOnlyTheLargestServerIsDisconnectedAtTheBudget(t *testing.T) {
	b, s, of := counting(t, 6*mib, func(*Config) {})
	other := of.Group(b.receiver.env.ID).Open(budget.Settings{Leave: func(*budget.Error) { t.Error("the smaller server has to free memory") }})
	require.NoError(t, other.Reserve(2*mib))
	a := s.next()
	a.answer(affectedOne)
	b.fill(a)
	assert.Contains(t, b.awaitLogged(lineFull).ContextMap()["error"], "limit_mib of memory_budget is reached")
	s.next().answer(affectedOne)
	require.NoError(t, other.Reserve(mib))
	other.Close()
}
