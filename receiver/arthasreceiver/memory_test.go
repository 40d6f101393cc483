// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/callbraid/callbraid/internal/arthas/sim/arthasserver"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/budget/budgettest"
	"github.com/callbraid/callbraid/internal/javamethods/text"
)

// The answer with all methods needs more than the limit, and each method alone needs little.
func TestAServerBeyondItsMemoryIsReconnected(t *testing.T) {
	for reason, tt := range map[string]struct {
		limit  int
		budget int64
		want   string
	}{
		"max_server_memory": {limit: mib, budget: 1 << 30, want: "limits.max_server_memory is reached (1048576 bytes)"},
		"memory_budget":     {limit: 1 << 30, budget: mib, want: "limit_mib of memory_budget is reached"},
	} {
		t.Run(reason, func(t *testing.T) {
			names := make([]string, 300)
			played, endpoint := newServer(t, func(s *arthasserver.Settings) {
				for i := range names {
					names[i] = fmt.Sprint("demo.C", i, strings.Repeat("x", text.MaxShort-20))
					s.Classes[names[i]] = []string{"m"}
				}
			})
			of := budget.New(tt.budget)
			b := newBed(t, played, endpoint, func(c *Config) {
				c.Monitors = []MonitorConfig{{TargetConfig: on("demo.*", "*"), Cycle: time.Second}}
				c.Limits.MaxServerMemory = tt.limit
			})
			b.Host = budgettest.Host(componenttest.NewNopHost(), of)
			b.Start()
			b.awaitJobs(1)
			for _, name := range names {
				played.Call(arthasserver.Call{Class: name, Method: "m", Thread: "w", ThreadID: 1, Cost: time.Millisecond})
			}
			line := b.AwaitLine("Server disconnected for a while: its data takes too much memory. Its sums begin at zero")
			assert.Contains(t, line.ContextMap()["error"], tt.want)
			assert.Positive(t, b.Points()["servers_disconnected{reason="+reason+"}"])
			b.Await("the end of the old session", func() bool { return b.Counter("leftover_sessions") > 0 })
			b.Await("a call after it", func() bool {
				played.Call(buy(time.Millisecond))
				return b.points("java.method.calls")["demo.Shop.buy"] > 0
			})
			assert.Less(t, of.Used(), int64(mib))
			b.Shutdown()
			assert.Zero(t, of.Used())
			b.awaitRestored()
		})
	}
}
