// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogagent

import (
	"errors"
	"io"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// writeControl sends a message on the control connection. That it fails is seen by
// readControl, after the last orders the HQ sent.
func (r *run) writeControl(m bytefrog.Message) {
	r.writeNow(func() bytefrog.Message { return m })
}

// writeNow is writeControl for a message that says how things are when it is written. A
// process that was killed says nothing more.
func (r *run) writeNow(message func() bytefrog.Message) {
	r.awaitThaw()
	r.controlLock.Lock()
	defer r.controlLock.Unlock()
	if r.isKilled() {
		return
	}
	r.control.Write(message().AppendTo(nil)) // see above
}

// readControl obeys orders until the control connection ends.
func (r *run) readControl(o *orders) {
	defer r.background.Done()
	r.control.SetReadDeadline(time.Time{}) // fails only with the connection, as the read then does
	for {
		m, err := o.next()
		if r.awaitThaw(); r.isKilled() {
			return
		}
		if err != nil {
			r.controlEnded(err)
			return
		}
		r.obey(m)
	}
}

// controlEnded tells unknown orders from the loss of the connection.
func (r *run) controlEnded(err error) {
	var unknown *bytefrog.ProtocolError
	if errors.As(err, &unknown) {
		r.options.Log("order: not understood: %v", unknown)
		r.die("the HQ sent what the agent does not know: " + unknown.Error())
		// What follows means nothing; only the end of the connection does.
		_, err = io.Copy(io.Discard, r.control)
		if r.awaitThaw(); err == nil {
			err = io.EOF
		}
	}
	settle := false
	r.change(func(l *life) { settle = l.controlLost("the control connection was lost (" + lossText(err) + ")") })
	if settle {
		r.options.Log("the control connection was lost: %v", err)
		time.AfterFunc(r.options.Settle, func() { r.change(func(l *life) { l.orphanSettled() }) })
	}
}

// obey does what the HQ orders.
func (r *run) obey(m bytefrog.Message) {
	r.orders.Add(1)
	switch m := m.(type) {
	case bytefrog.Command:
		r.options.Log("order: %v", m.Of)
		r.command(m.Of)
	case bytefrog.ErrorMessage:
		r.options.Log("order: error: %s", m.Text)
		r.die("the HQ sent error: " + m.Text)
	default:
		r.options.Log("order: %v, which does not belong here", m.Type())
		r.die("the HQ sent " + m.Type().String() + " in the middle of a run")
	}
}

func (r *run) command(of bytefrog.MessageType) {
	now, dies, broken, reason := time.Now(), false, false, ""
	r.change(func(l *life) {
		switch of {
		case bytefrog.TypeStart:
			if l.state == waiting {
				r.started = now
			}
			l.start()
		case bytefrog.TypeStop:
			l.stop()
		case bytefrog.TypePause:
			dies = l.pause()
		case bytefrog.TypeUnpause:
			dies = l.unpause()
		case bytefrog.TypeSuspend:
			dies, broken = l.suspend()
		case bytefrog.TypeUnsuspend:
			dies = l.unsuspend()
		}
		reason = l.reason
	})
	if broken {
		r.breaks.Add(1)
		r.writeControl(bytefrog.DataBreak{})
	}
	if dies {
		r.bury(reason)
	}
}

// beat sends heartbeats at the configured interval. An interval of 0 has none but
// those of the begin and the end.
func (r *run) beat() {
	defer r.background.Done()
	if r.configuration.HeartbeatInterval <= 0 {
		return
	}
	ticker := time.NewTicker(r.configuration.HeartbeatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.awaitThaw()
			r.beatNow()
		case <-r.final:
			return
		}
	}
}

// beatNow sends one heartbeat. Its mode is that of the moment in which it is written, so
// that modes come in their order.
func (r *run) beatNow() {
	r.heartbeats.Add(1)
	r.writeNow(func() bytefrog.Message {
		r.mu.Lock()
		defer r.mu.Unlock()
		return bytefrog.Heartbeat{Mode: r.life.mode(), SendBuffers: uint16(min(len(r.queue), 1<<16-1))}
	})
}
