// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/telemetry"
)

// controlReader reads the control connection of a run. It is for one goroutine.
type controlReader struct {
	run *run
	// counted is how many bytes of the buffer are in the memory of the run.
	counted int
}

// read reads the connection to its end, and ends the run then. It also ends the run for bad data,
// and when no heartbeats arrive. It continues while the agent is disconnected, until the farewell
// takes the connection away.
func (c *controlReader) read() {
	r := c.run
	defer close(r.control.ended)
	in := r.control.in
	silence := r.env.Settings.Silence
	pulse := pulse{silence: silence, heard: r.env.Receiver.Now()}
	for {
		err := c.decode()
		if err == nil {
			err = in.Overdue()
		}
		if err != nil {
			r.badData(telemetry.ConnectionControl, err)
			return
		}
		now := r.env.Receiver.Now()
		until, lost := pulse.check(r.control.heartbeats.Load(), now)
		if lost && !(r.control.lastMode() == bytefrog.ModeShuttingDown && c.isSending(now, silence)) {
			r.life.leave(Unresponsive(silence))
		}
		_, err = in.Read(now, until)
		c.counted = r.Memory.Resize(c.counted, in.Size())
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
// arrived recently, or received data waits for the pipeline.
func (c *controlReader) isSending(now time.Time, recently time.Duration) bool {
	r := c.run
	return now.Sub(r.lastData()) < recently || !r.data.caughtUp() || r.batches.waiting() > 0
}

// closed ends the run because its control connection has ended, with err.
func (c *controlReader) closed(err error) {
	r := c.run
	// The last read may have returned data together with the error.
	if bad := c.decode(); bad != nil {
		r.badData(telemetry.ConnectionControl, bad)
	}
	if r.control.lastMode() == bytefrog.ModeShuttingDown {
		r.life.leave(endedByAgent())
		return
	}
	if bad := r.control.in.Cut(); bad != nil {
		err = bad
	}
	r.life.leave(disconnected(err))
}

// decode handles the messages that have arrived. The error is a *connreader.BadData.
func (c *controlReader) decode() error {
	r := c.run
	in := r.control.in
	for len(in.Bytes()) > 0 {
		m, n, err := bytefrog.DecodeControl(in.Bytes(), r.env.Settings.MaxMessageSize)
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
		r.env.Telemetry.Class(m.Result)
		r.classes.add(m)
		r.Records.Class(m)
	case bytefrog.ErrorMessage:
		r.agentError(m)
	}
	return nil
}

func (c *controlReader) heartbeat(m bytefrog.Heartbeat) {
	r := c.run
	before := r.control.heartbeat(m, r.env.Receiver.Now().Sub(r.life.opened))
	r.agent.Heartbeat(m.Mode)
	if before != m.Mode {
		r.logger.Debug("The agent changed its mode", zap.Stringer("from", before), zap.Stringer("to", m.Mode))
		r.Records.Mode(before, m.Mode)
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
	r.breaks.add(callevent.Point(at, r.agent.causeOfBreak()))
	r.agent.DataBreak(at)
	r.wake()
	return nil
}
