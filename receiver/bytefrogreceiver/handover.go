// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/runmemory"
)

// newHandover makes the hand-over of a run's batches. The policy block: whoever hands on
// a batch waits until it was accepted, so a data connection is not read meanwhile, and
// the agent feels it. The policy suspend, and block after max_block: the batch is held, and
// the agent is told to suspend; only when half of the run's memory is used whoever hands on
// waits. A call that the pipeline does not return from is waited for as long as by block.
func (r *run) newHandover() *handover.Batches {
	settings := handover.BatchesSettings{
		GiveUp:       r.memory.Full(),
		WhileRefused: "they are held and handed on again",
		Accepted:     r.env.telemetry.batchAccepted,
		Dropped: func(events int, reason string) {
			if reason == handover.DroppedMemory {
				reason = memoryReason(r.memory)
			}
			r.env.telemetry.batchDropped(events, reason)
		},
		Retried: r.env.telemetry.handoverRetried,
		Needs:   r.env.config.needs(),
		Scope:   r.failed.putTo,
	}
	if atOnce, after := r.env.config.OnOverload == OverloadSuspend, r.env.config.MaxBlock; atOnce || after > 0 {
		settings.Hold = &handover.Hold{
			AtOnce: atOnce, After: after,
			Memory: heldMemory{r.memory}, Refused: r.suspendForOverload, Drained: r.wake,
		}
	}
	return receiverkit.NewBatches(r.ctx, r.env.run, r.logger, &r.env.config.BatchesConfig, settings)
}

// eventBytes is about what an event takes in the agent's buffers.
const eventBytes = 16

// needs are what the settings ask of stack_pairing's. What is handed on again, or behind, is on
// its way for some time, so there well below is at most half.
func (c *Config) needs() callevent.Needs {
	const maxWait, maxEvents, idleTimeout = "reorder.max_wait", "reorder.max_events", "idle_timeout"
	of := func(setting string, value any) string { return fmt.Sprint(setting, ": ", value) }
	return callevent.Needs{
		{Of: maxWait, Because: of("name_wait", c.NameWait), MoreThan: int64(c.NameWait)},
		{Of: maxWait, Because: of("retry.max_interval", c.Retry.MaxInterval), MoreThan: 2*int64(c.Retry.MaxInterval) - 1},
		{Of: maxEvents, Because: of("limits.max_connection_lead", c.Limits.MaxConnectionLead), MoreThan: int64(c.Limits.MaxConnectionLead)},
		{Of: maxEvents, Because: of("agent.buffer_memory", c.Agent.BufferMemory), MoreThan: int64(c.Agent.BufferMemory / eventBytes)},
		{Of: idleTimeout, Because: of("keepalive_interval", c.KeepaliveInterval), MoreThan: int64(c.KeepaliveInterval)},
	}
}

// send sends a batch of the run to the pipeline.
func (r *run) send(batch callevent.Packed) { r.sendBy(r.handover.Send, batch) }

// sendBy is send by the loop of a connection (handover.SendFrom).
func (r *run) sendBy(send func(callevent.Packed, pcommon.Resource), batch callevent.Packed) {
	began := r.env.Now()
	send(batch, r.resource)
	r.heldUp.ended(began, r.env.Now())
}

// heldMemory is the memory of a run for batches that are held. It leaves half of it for
// names: without that, one more would end the run. Nobody has to leave for a batch that is held:
// where the process has no room for it, its program waits.
type heldMemory struct{ *runmemory.Memory }

// Take takes bytes, if no more than half of the limit is used then.
func (m heldMemory) Take(bytes int) bool { return m.ReserveOfHalfIfRoom(bytes) }

// Give gives bytes back.
func (m heldMemory) Give(bytes int) { m.Return(bytes) }
