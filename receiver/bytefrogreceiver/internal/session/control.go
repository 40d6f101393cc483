// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
)

// control is the control connection of a run. One goroutine reads it (controlreader.go), and any
// goroutine sends.
type control struct {
	in *connreader.Reader
	// idle wakes batches that wait until all received bytes were processed.
	idle hq.Signal
	// ended is closed when the connection is no longer read.
	ended chan struct{}

	writing sync.Mutex

	// mode and sendBuffers are those of the last heartbeat.
	mode        atomic.Uint32
	sendBuffers atomic.Uint32
	// heartbeats counts them. heard is when the last one arrived, as time since the run was opened.
	heartbeats atomic.Uint64
	heard      atomic.Int64
}

func newControl(in *connreader.Reader) *control {
	c := &control{in: in, ended: make(chan struct{})}
	c.mode.Store(uint32(bytefrog.ModeInitializing))
	in.OnWait(c.idle.Notify)
	return c
}

// send sends a message to the agent.
func (c *control) send(m bytefrog.Message) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return hq.Write(c.in.Conn(), m)
}

// heartbeat notes a heartbeat, and returns the mode of the one before.
func (c *control) heartbeat(m bytefrog.Heartbeat, heard time.Duration) (before bytefrog.Mode) {
	c.sendBuffers.Store(uint32(m.SendBuffers))
	before = bytefrog.Mode(c.mode.Swap(uint32(m.Mode)))
	c.heard.Store(int64(heard))
	c.heartbeats.Add(1)
	return before
}

// lastMode returns the mode of the last heartbeat, or tracing if newer events have arrived from an agent that was suspended.
func (c *control) lastMode() bytefrog.Mode { return bytefrog.Mode(c.mode.Load()) }

// resumed notes that events prove that the agent traces again: it sent its last heartbeat before it obeyed unsuspend.
func (c *control) resumed() {
	c.mode.CompareAndSwap(uint32(bytefrog.ModeSuspended), uint32(bytefrog.ModeTracing))
}

// controlPatience is how long a batch waits for the control connection. Its reader never waits, so
// only the scheduler delays it.
const controlPatience = 250 * time.Millisecond

// awaitCaughtUp waits until all received bytes were processed: a batch must carry a data break that
// the agent sent before the batch's events.
func (c *control) awaitCaughtUp() {
	if isClosed(c.ended) || c.in.CaughtUp() {
		return
	}
	timer := time.NewTimer(controlPatience)
	defer timer.Stop()
	for {
		changed := c.idle.Next()
		if c.in.CaughtUp() {
			return
		}
		select {
		case <-changed:
		case <-c.ended:
			return
		case <-timer.C:
			return
		}
	}
}
