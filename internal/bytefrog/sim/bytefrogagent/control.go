// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogagent

import (
	"errors"
	"io"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// readControl carries out orders until the control connection ends.
func (r *run) readControl(o *orders) {
	defer r.background.Done()
	r.control.SetReadDeadline(time.Time{}) // an error means a lost connection, which the read reports
	for {
		m, err := o.next()
		if r.awaitThaw(); r.isKilled() {
			return
		}
		if err != nil {
			r.controlEnded(err)
			return
		}
		r.carryOut(m)
	}
}

// controlEnded handles an unknown order or the loss of the connection.
func (r *run) controlEnded(err error) {
	var unknown *bytefrog.ProtocolError
	if errors.As(err, &unknown) {
		r.options.Log("unknown order: %v", unknown)
		r.fail("the HQ sent an unknown message: " + unknown.Error())
		// The following bytes have no meaning; only the end of the connection has.
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

// carryOut carries out an order of the HQ.
func (r *run) carryOut(m bytefrog.Message) {
	r.orders.Add(1)
	switch m := m.(type) {
	case bytefrog.Command:
		r.options.Log("order: %v", m.Of)
		r.command(m.Of)
	case bytefrog.ErrorMessage:
		r.options.Log("order: error: %s", m.Text)
		r.fail("the HQ sent error: " + m.Text)
	default:
		r.options.Log("order: %v, which is not allowed here", m.Type())
		r.fail("the HQ sent " + m.Type().String() + " in the middle of a run")
	}
}

func (r *run) command(of bytefrog.MessageType) {
	now, fails, broken, reason := time.Now(), false, false, ""
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
			fails = l.pause()
		case bytefrog.TypeUnpause:
			fails = l.unpause()
		case bytefrog.TypeSuspend:
			fails, broken = l.suspend()
		case bytefrog.TypeUnsuspend:
			fails = l.unsuspend()
		}
		reason = l.reason
	})
	if broken {
		r.breaks.Add(1)
		r.writeControl(bytefrog.DataBreak{})
	}
	if fails {
		r.endAfterError(reason)
	}
}
