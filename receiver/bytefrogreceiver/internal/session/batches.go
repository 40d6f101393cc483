// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/runmemory"
)

// batches delivers the batches of a run to the pipeline. It is for many goroutines.
type batches struct {
	// Batches is nil if no pipeline takes traces.
	*handover.Batches
	resource pcommon.Resource
	heldUp   *holdUp
	now      func() time.Time
}

// overload is what batches do while the pipeline refuses.
type overload struct {
	memory *runmemory.Memory
	// refused suspends the agent. drained is called when no batch is held any more.
	refused func()
	drained func()
}

// newBatches opens the delivery. With the policy block, a data connection waits until the pipeline
// accepts its batch. It is not read meanwhile, so the agent waits too. With the policy suspend, and
// with block after max_block, the batch is held and the agent is suspended. Connections then wait
// only while half of the run's memory is used. A pipeline that does not return from a call has the
// time of block with both policies.
func newBatches(ctx context.Context, env *Environment, logger *zap.Logger, resource pcommon.Resource, heldUp *holdUp, c *classes, o overload) *batches {
	settings := handover.BatchesSettings{
		GiveUp:       o.memory.Full(),
		WhileRefused: "they are held and sent again",
		Accepted:     env.Telemetry.BatchAccepted,
		Dropped: func(events int, reason string) {
			if reason == handover.DroppedMemory {
				reason = memoryReason(o.memory)
			}
			env.Telemetry.BatchDropped(events, reason)
		},
		Retried: env.Telemetry.HandoverRetried,
		Needs:   env.Settings.Needs,
		Scope:   c.failed.putTo,
	}
	if atOnce, after := env.Settings.SuspendAtOnce, env.Settings.MaxBlock; atOnce || after > 0 {
		settings.Hold = &handover.Hold{
			AtOnce: atOnce, After: after,
			Memory: heldMemory{o.memory}, Refused: o.refused, Drained: o.drained,
		}
	}
	return &batches{
		Batches:  receiverkit.NewBatches(ctx, env.Receiver, logger, env.Settings.Batches, settings),
		resource: resource, heldUp: heldUp, now: func() time.Time { return env.Receiver.Now() },
	}
}

// isOpen reports whether a pipeline takes traces.
func (b *batches) isOpen() bool { return b.Batches != nil }

// waiting returns how many connections wait for the pipeline.
func (b *batches) waiting() int {
	if !b.isOpen() {
		return 0
	}
	return b.Waiting()
}

// isHolding reports whether batches are held, or wait.
func (b *batches) isHolding() bool { return b.isOpen() && (b.Holds() || b.waiting() > 0) }

// send sends a batch to the pipeline.
func (b *batches) send(batch callevent.Packed) { b.sendBy(b.Send, batch) }

// sendBy is send in the loop of a connection (SendFrom).
func (b *batches) sendBy(send func(callevent.Packed, pcommon.Resource), batch callevent.Packed) {
	began := b.now()
	send(batch, b.resource)
	b.heldUp.ended(began, b.now())
}

// heldMemory is the memory of a run for held batches. It leaves half of the run's limit for names:
// without room for a name the run ends. No run is disconnected to make room for a held batch:
// without room in the process, the program waits.
type heldMemory struct{ *runmemory.Memory }

// Reserve reserves bytes if at most half of the limit is used.
func (m heldMemory) Reserve(bytes int) bool { return m.ReserveOfHalfIfRoom(bytes) }

// Release returns bytes.
func (m heldMemory) Release(bytes int) { m.Return(bytes) }

// memoryReason returns the bound that made the memory of a run full, for metrics.
func memoryReason(m *runmemory.Memory) string {
	if m.ReachedOwnLimit() {
		return "max_run_memory"
	}
	return handover.DroppedMemory
}
