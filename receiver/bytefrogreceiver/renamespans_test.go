// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/processor/stackpairingprocessor"
)

// spanNames counts the thread names of the spans with an entry from a number on, and before it.
type spanNames struct {
	mu            sync.Mutex
	from          int64
	before, after map[string]int
}

func (n *spanNames) consume(_ context.Context, traces ptrace.Traces) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, resource := range traces.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				sequence, _ := span.Attributes().Get("callbraid.sequence")
				name, _ := span.Attributes().Get("thread.name")
				if sequence.Int() < n.from {
					n.before[name.Str()]++
				} else {
					n.after[name.Str()]++
				}
			}
		}
	}
	return nil
}

// callsAt are n calls of method 1 on thread 1, perTick of them in a millisecond.
func callsAt(first, at uint32, n, perTick int) (data []byte) {
	for i := range uint32(n) {
		e := bytefrog.Event{Type: bytefrog.TypeMethodEntry, Time: at + i/uint32(perTick), Sequence: first + 2*i, Method: 1, Thread: 1}
		data = bytefrog.AppendEvent(data, e)
		e.Type, e.Sequence = bytefrog.TypeMethodExit, e.Sequence+1
		data = bytefrog.AppendEvent(data, e)
	}
	return data
}

// Calls under the new name arrive on another connection than the rename, and end before the rename's own connection sends it.
func TestCallsThatEndBeforeTheConnectionSendsTheirRenameHaveTheNewName(t *testing.T) {
	const old, after = 5, 20_000
	for name, test := range map[string]struct {
		at      uint32 // the time of the last calls before the rename
		perTick int
	}{
		"in a buffer of its own":          {1, after},
		"behind calls of the same thread": {299, after},
		"while the clock goes on":         {299, 100},
	} {
		t.Run(name, func(t *testing.T) {
			seen := &spanNames{from: 2 * old, before: map[string]int{}, after: map[string]int{}}
			sink, err := consumer.NewTraces(seen.consume)
			require.NoError(t, err)
			factory := stackpairingprocessor.NewFactory()
			config := factory.CreateDefaultConfig()
			config.(*stackpairingprocessor.Config).SpanAttributes.Sequence = true
			pairing, err := factory.CreateTraces(context.Background(), processortest.NewNopSettings(factory.Type()), config, sink)
			require.NoError(t, err)
			require.NoError(t, pairing.Start(context.Background(), componenttest.NewNopHost()))

			b := unstartedBed(t, quickly, withDataConnections(2))
			b.Next.Traces = pairing
			b.Start()
			a := connect(b, 1)
			named, other := a.join(), a.join()
			named.write(append(namesOne(), callsAt(0, test.at, old, old)...))
			b.awaitReceived(2 * old)
			named.write(thread(1, 300, "worker"))
			run := b.receiver.env.registry.lookup(1)
			sent := len(namesOne()) + len(callsAt(0, test.at, old, old)) + len(thread(1, 300, "worker"))
			b.Await("the rename", func() bool { return run.State().Bytes == uint64(sent) })
			other.write(callsAt(2*old, 300, after, test.perTick))
			a.finish()
			b.awaitRuns(0)
			require.NoError(t, pairing.Shutdown(context.Background()))
			assert.Equal(t, map[string]int{"main": old}, seen.before)
			assert.Equal(t, map[string]int{"worker": after}, seen.after)
		})
	}
}
