// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/pace"
)

// control is the control connection of a run. One goroutine reads it; any sends.
type control struct {
	// idle wakes batches that wait until all that has arrived was handled.
	idle pace.Broadcast
	in   *input
	// counted is how many bytes of its buffer are in the memory of the run.
	counted int
	// ended is closed when nothing more will be read.
	ended chan struct{}

	mu sync.Mutex // of writing

	// mode and sendBuffers are what the last heartbeat said.
	mode        atomic.Uint32
	sendBuffers atomic.Uint32
	// heartbeats counts them, and heard is when the last came, as time since the run was
	// opened.
	heartbeats atomic.Uint64
	heard      atomic.Int64
}

// writeTimeout is how long an agent has to take a message: it reads its control
// connection all the time.
const writeTimeout = time.Second

func newControl(in *input) *control {
	c := &control{in: in, ended: make(chan struct{})}
	c.mode.Store(uint32(bytefrog.ModeInitializing))
	return c
}

// send sends a message to the agent.
func (c *control) send(m bytefrog.Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return writeMessage(c.in.conn, m)
}

func writeMessage(conn net.Conn, m bytefrog.Message) error {
	if err := conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err := conn.Write(m.AppendTo(nil))
	if err != nil {
		return fmt.Errorf("sending %v: %w", m.Type(), err)
	}
	return nil
}

// lastMode is the mode of the last heartbeat.
func (c *control) lastMode() bytefrog.Mode { return bytefrog.Mode(c.mode.Load()) }

// readControl reads the control connection to its end, which is the run's, or ends
// the run for what it reads or misses. It is read on while the run is being left, until
// it is taken away.
func (r *run) readControl() {
	defer close(r.control.ended)
	in := r.control.in
	silence := time.Duration(r.env.config.MissedHeartbeats) * r.env.config.Agent.HeartbeatInterval
	pulse := pulse{silence: silence, heard: r.env.now()}
	for {
		err := r.decodeControl()
		if err == nil {
			err = in.overdue()
		}
		if err != nil {
			r.env.telemetry.badData(connectionControl)
			r.leave(givenUpForBadData(connectionControl, err))
			return
		}
		now := r.env.now()
		until, lost := pulse.feel(r.control.heartbeats.Load(), now)
		if lost && !(r.control.lastMode() == bytefrog.ModeShuttingDown && r.isSending(now, silence)) {
			r.leave(unresponsive(silence))
		}
		_, err = in.read(now, until)
		r.control.counted = r.memory.Resize(r.control.counted, len(in.buf))
		if errors.Is(err, errTaken) {
			return
		}
		if err != nil && !timedOut(err) {
			r.controlClosed(err)
			return
		}
	}
}

// isSending reports whether an agent that is shutting down is alive though its heart
// beats no more: what it still has to send has come lately, or the receiver is held
// up and reads no more of it.
func (r *run) isSending(now time.Time, lately time.Duration) bool {
	return now.Sub(r.lastActive()) < lately || !r.data.caughtUp() || r.handover != nil && r.handover.Waiting() > 0
}

// pulse says whether an agent's heart beats.
type pulse struct {
	silence time.Duration
	// heard is when it was heard last, after so many beats.
	heard time.Time
	beats uint64
	// looked says that the connection was read once more after the silence.
	looked bool
}

// feel takes how many heartbeats have come till now, and says until when to wait
// for the next, and whether the agent counts as lost: nothing was heard for too
// long, and nothing lies unread.
func (p *pulse) feel(beats uint64, now time.Time) (until time.Time, lost bool) {
	if beats != p.beats {
		p.beats, p.heard, p.looked = beats, now, false
	}
	if now.Sub(p.heard) < p.silence {
		return p.heard.Add(p.silence), false
	}
	if !p.looked {
		p.looked = true
		return now.Add(lastLook), false
	}
	p.heard, p.looked = now, false
	return now.Add(p.silence), true
}

// controlClosed ends the run because its control connection did, with err.
func (r *run) controlClosed(err error) {
	// What came with the end is still to be decoded.
	if bad := r.decodeControl(); bad != nil {
		r.env.telemetry.badData(connectionControl)
		r.leave(givenUpForBadData(connectionControl, bad))
	}
	if r.control.lastMode() == bytefrog.ModeShuttingDown {
		r.leave(endedByAgent())
		return
	}
	if bad := r.control.in.cut(); bad != nil {
		err = bad
	}
	r.leave(disconnected(err))
}

// decodeControl handles the messages that have come. The error is a *badData.
func (r *run) decodeControl() error {
	in := r.control.in
	for len(in.bytes()) > 0 {
		m, n, err := bytefrog.DecodeControl(in.bytes(), r.env.config.Limits.MaxMessageSize)
		if err != nil {
			return in.bad(err)
		}
		if n == 0 {
			return nil
		}
		if err := r.handleControl(m); err != nil {
			return in.bad(err)
		}
		in.take(n)
	}
	return nil
}

func (r *run) handleControl(m bytefrog.Message) error {
	switch m := m.(type) {
	case bytefrog.Heartbeat:
		r.heartbeat(m)
	case bytefrog.DataBreak:
		return r.dataBreak(m)
	case bytefrog.ClassReport:
		r.agentPrepared()
		r.classReport(m)
	case bytefrog.ErrorMessage:
		r.agentError(m)
	}
	return nil
}

func (r *run) heartbeat(m bytefrog.Heartbeat) {
	r.control.sendBuffers.Store(uint32(m.SendBuffers))
	before := bytefrog.Mode(r.control.mode.Swap(uint32(m.Mode)))
	r.control.heard.Store(int64(r.env.now().Sub(r.opened)))
	r.control.heartbeats.Add(1)
	r.signs.give()
	if before != m.Mode {
		r.logger.Debug("The agent changed its mode", zap.Stringer("from", before), zap.Stringer("to", m.Mode))
		r.logs.mode(before, m.Mode)
	}
}

// dataBreak makes a barrier of a data break. Its number can be ahead of all that
// was received.
func (r *run) dataBreak(m bytefrog.DataBreak) error {
	at, err := r.stream.Sequence(m.Sequence, 1)
	if err != nil {
		return err
	}
	r.breakAt(callevent.Point(at, r.causeOfBreak()))
	r.tracing.answer(at)
	r.signs.give()
	r.wake()
	return nil
}

// agentError: the agent has given up, and closes its connections.
func (r *run) agentError(m bytefrog.ErrorMessage) {
	r.logs.agentError(m)
	r.leave(failedInAgent(m.Text))
}
