// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"errors"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
	"github.com/callbraid/callbraid/internal/call/callevent"
)

// controlReader reads the control connection of a run. It is for one goroutine.
type controlReader struct{ run *run }

// read reads the connection to its end, and ends the run then. It also ends the run for bad data,
// and when no heartbeats arrive. The connection is read on while the agent is left, until the
// farewell takes it away.
func (c *controlReader) read() {
	r := c.run
	defer close(r.control.ended)
	in := r.control.in
	silence := time.Duration(r.env.config.MissedHeartbeats) * r.env.config.Agent.HeartbeatInterval
	pulse := pulse{silence: silence, heard: r.env.Now()}
	for {
		err := c.decode()
		if err == nil {
			err = in.Overdue()
		}
		if err != nil {
			r.env.telemetry.badData(connectionControl)
			r.leave(givenUpForBadData(connectionControl, err))
			return
		}
		now := r.env.Now()
		until, lost := pulse.feel(r.control.heartbeats.Load(), now)
		if lost && !(r.control.lastMode() == bytefrog.ModeShuttingDown && c.isSending(now, silence)) {
			r.leave(unresponsive(silence))
		}
		_, err = in.Read(now, until)
		r.control.counted = r.memory.Resize(r.control.counted, in.Size())
		if errors.Is(err, connreader.ErrTaken) {
			return
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			c.closed(err)
			return
		}
	}
}

// isSending reports whether an agent that is shutting down is alive without heartbeats: data has
// arrived lately, or the receiver waits for the pipeline and reads no more.
func (c *controlReader) isSending(now time.Time, lately time.Duration) bool {
	r := c.run
	return now.Sub(r.lastActive()) < lately || !r.data.caughtUp() || r.handover != nil && r.handover.Waiting() > 0
}

// closed ends the run because its control connection has ended, with err.
func (c *controlReader) closed(err error) {
	r := c.run
	// The last read may have brought data with the end.
	if bad := c.decode(); bad != nil {
		r.env.telemetry.badData(connectionControl)
		r.leave(givenUpForBadData(connectionControl, bad))
	}
	if r.control.lastMode() == bytefrog.ModeShuttingDown {
		r.leave(endedByAgent())
		return
	}
	if bad := r.control.in.Cut(); bad != nil {
		err = bad
	}
	r.leave(disconnected(err))
}

// decode handles the messages that have arrived. The error is a *connreader.BadData.
func (c *controlReader) decode() error {
	r := c.run
	in := r.control.in
	for len(in.Bytes()) > 0 {
		m, n, err := bytefrog.DecodeControl(in.Bytes(), r.env.config.Limits.MaxMessageSize)
		if err != nil {
			return in.BadData(err)
		}
		if n == 0 {
			return nil
		}
		if err := c.handle(m); err != nil {
			return in.BadData(err)
		}
		in.Consume(n)
	}
	return nil
}

func (c *controlReader) handle(m bytefrog.Message) error {
	r := c.run
	switch m := m.(type) {
	case bytefrog.Heartbeat:
		c.heartbeat(m)
	case bytefrog.DataBreak:
		return c.dataBreak(m)
	case bytefrog.ClassReport:
		r.agent.SetPrepared()
		r.classReport(m)
	case bytefrog.ErrorMessage:
		r.agentError(m)
	}
	return nil
}

func (c *controlReader) heartbeat(m bytefrog.Heartbeat) {
	r := c.run
	r.control.sendBuffers.Store(uint32(m.SendBuffers))
	before := bytefrog.Mode(r.control.mode.Swap(uint32(m.Mode)))
	r.control.heard.Store(int64(r.env.Now().Sub(r.opened)))
	r.control.heartbeats.Add(1)
	r.agent.Heartbeat(m.Mode)
	if before != m.Mode {
		r.logger.Debug("The agent changed its mode", zap.Stringer("from", before), zap.Stringer("to", m.Mode))
		r.logs.mode(before, m.Mode)
	}
}

// dataBreak makes a barrier of a data break. Its number can be ahead of all events that have
// arrived.
func (c *controlReader) dataBreak(m bytefrog.DataBreak) error {
	r := c.run
	at, err := r.stream.Sequence(m.Sequence, 1)
	if err != nil {
		return err
	}
	r.breakAt(callevent.Point(at, r.causeOfBreak()))
	r.agent.DataBreak(at)
	r.wake()
	return nil
}
