// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/budget/budgettest"
	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
)

// lineFull is the log line of a server with too much memory.
const lineFull = "The server is disconnected for a while: its data needs too much memory. Its counters start again at zero"

// holding sets the memory budget of the receiver to so many bytes.
func holding(limit int64) (of *budget.Budget, o option) {
	of = budget.New(limit)
	return of, func(b *bed, _ *Config) { b.Host = budgettest.Host(componenttest.NewNopHost(), of) }
}

// create publishes a message of so many objects that are created, from an ID on.
func (p *played) create(first, objects uint64) {
	events := rbkit.NewCollection(rbkit.Released)
	for i := range objects {
		assert.NoError(p.t, events.Created(1, first+i, []byte("A")))
	}
	p.PublishEvents(time.Now(), events)
}

func TestTheServerWithMostMemoryIsDisconnectedAndTheOtherContinues(t *testing.T) {
	hostile, honest := play(t, rbkitserver.Options{Hello: released}), play(t, rbkitserver.Options{Hello: released})
	of, limited := holding(24 * mib)
	b := newBed(t, following(honest, hostile), limited)
	honest.awaitSubscriber()
	sent, first := uint64(0), uint64(0)
	b.Await("the end of the hostile server", func() bool {
		if hostile.Subscribers() > 0 {
			hostile.create(first, 50_000)
			first += 50_000
		}
		if sent < 1000 {
			honest.create(sent, 10)
			sent += 10
		}
		return b.Counter("servers_disconnected") > 0
	})
	line := b.AwaitLine(lineFull)
	assert.Equal(t, hostile.addresses.Publish, line.ContextMap()["server"])
	assert.Contains(t, line.ContextMap()["error"], "limit_mib of memory_budget is reached")
	b.Await("all objects of the other server", func() bool { return b.state().Tracked == int(sent) })
	assert.Zero(t, b.state().Lost)
	b.Shutdown()
	assert.Zero(t, of.Used())
}

func TestAServerBeyondItsMemoryLimitIsDisconnectedAndConnectsAgain(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	of, limited := holding(1 << 30)
	b := newBed(t, following(server), limited, func(_ *bed, c *Config) { c.Limits.MaxServerMemory = 8 * mib })
	server.awaitSubscriber()
	first := uint64(0)
	b.Await("the end of the server", func() bool {
		if server.Subscribers() > 0 {
			server.create(first, 50_000)
			first += 50_000
		}
		return b.Counter("servers_disconnected") > 0
	})
	assert.Contains(t, b.AwaitLine(lineFull).ContextMap()["error"], "limits.max_server_memory is reached (8388608 bytes)")
	b.Await("memory that is freed", func() bool { return of.Used() < 4*mib })
	b.Await("objects of the next connection", func() bool {
		if server.Subscribers() > 0 {
			server.create(0, 10)
		}
		tracked := b.state().Tracked
		return tracked > 0 && uint64(tracked) < first/2
	})
}
