// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
)

// control is the control connection of a run. One goroutine reads it (controlreader.go); any sends.
type control struct {
	// idle wakes batches that wait until all that has arrived was handled.
	idle hq.Signal
	in   *connreader.Reader
	// counted is how many bytes of its buffer are in the memory of the run.
	counted int
	// ended is closed when nothing more will be read.
	ended chan struct{}

	mu sync.Mutex // of writing

	// mode and sendBuffers are those of the last heartbeat.
	mode        atomic.Uint32
	sendBuffers atomic.Uint32
	// heartbeats counts them, and heard is when the last arrived, as time since the run was opened.
	heartbeats atomic.Uint64
	heard      atomic.Int64
}

func newControl(in *connreader.Reader) *control {
	c := &control{in: in, ended: make(chan struct{})}
	c.mode.Store(uint32(bytefrog.ModeInitializing))
	return c
}

// send sends a message to the agent.
func (c *control) send(m bytefrog.Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return hq.Write(c.in.Conn(), m)
}

// lastMode is the mode of the last heartbeat.
func (c *control) lastMode() bytefrog.Mode { return bytefrog.Mode(c.mode.Load()) }

// pulse watches whether an agent's heartbeats arrive.
type pulse struct {
	silence time.Duration
	// heard is when a heartbeat was seen last, and beats how many had arrived then.
	heard time.Time
	beats uint64
	// looked says that the connection was read once more after the silence.
	looked bool
}

// feel is called with the number of heartbeats that have arrived. It returns until when to wait for
// the next, and whether the agent counts as lost: none has arrived for too long, and nothing is
// unread.
func (p *pulse) feel(beats uint64, now time.Time) (until time.Time, lost bool) {
	if beats != p.beats {
		p.beats, p.heard, p.looked = beats, now, false
	}
	if now.Sub(p.heard) < p.silence {
		return p.heard.Add(p.silence), false
	}
	if !p.looked {
		p.looked = true
		return now.Add(connreader.LastLook), false
	}
	p.heard, p.looked = now, false
	return now.Add(p.silence), true
}
