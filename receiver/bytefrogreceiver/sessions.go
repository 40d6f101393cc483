// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"errors"
	"net"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
	"github.com/callbraid/callbraid/internal/receiverkit/eventswitch"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/session"
)

// openSession opens the session of an agent. At limits.max_runs it first ends the run of the agent that
// has proved least, and waits a short time for its end: the program of the new agent waits meanwhile.
func (r *bytefrogReceiver) openSession(version uint8, control *connreader.Reader) (*session.Session, error) {
	patience := time.After(r.env.timing.giveWay)
	for {
		opened, err := r.env.registry.open(func(id uint8) (*session.Session, error) { return r.env.newSession(id, version, control) })
		var limit *limitError
		if !errors.As(err, &limit) {
			return opened, err
		}
		least := r.env.registry.leastProven(r.env.Now().Add(-r.env.timing.unproven))
		if least == nil {
			return nil, err
		}
		r.env.telemetry.GaveWay()
		least.Leave(session.GaveWay(limit))
		select {
		case <-least.Over():
		case <-patience:
			return nil, err
		case <-r.env.receiver.Serving.Done():
			return nil, errClosed
		}
	}
}

// newSession returns the session of an agent with an ID.
func (e *environment) newSession(id, version uint8, control *connreader.Reader) (*session.Session, error) {
	stream, err := e.newStreamID()
	if err != nil {
		return nil, err
	}
	resource := newResource(e.config, stream)
	logs := runLogs{sink: e.logs, off: eventswitch.Off(e.config.Events), origin: &origin{run: id, resource: resource}, now: e.Now}
	var created *session.Session
	created = session.New(e.sessions, session.Options{
		ID: id, Stream: stream, Resource: resource, Version: version, Control: control,
		Memory: newRunMemory(e.receiver.Memory, e.config.Limits.MaxRunMemory), Records: logs,
		Started: func() func() { return e.receiver.Agents.Register(newSteered(created, e.ID, logs)) },
		Linger: func(data []net.Conn, control net.Conn, answered bool) {
			e.registry.linger(id)
			e.lingering.begin(lingerer{data: data, control: control, answered: answered, gone: func() { e.registry.gone(id) }})
		},
		Ended: func(last session.State) {
			e.telemetry.Runs(-1)
			e.metrics.Ended(last)
			e.registry.close(id)
		},
	})
	e.telemetry.Runs(1)
	return created, nil
}
