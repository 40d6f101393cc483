// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/slots"
	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// serve is what the goroutine of a connection does: it finds out whose it is, and talks
// with the agent until its end.
func (r *julReceiver) serve(c *conversation) {
	a, err := r.register(c)
	if err != nil && c.slot.Taken() {
		return // it is counted already
	}
	if err != nil {
		r.refuse(c.conn, err)
		return
	}
	r.env.counts.registered(a.who.Domain)
	r.env.telemetry.agents(1)
	defer r.env.telemetry.agents(-1)
	a.run()
}

// register finds out which agent is at the end of a connection, and lets it in.
func (r *julReceiver) register(c *conversation) (*agent, error) {
	if r.env.config.dialect() == lttngagent.RFC {
		return r.registerUnheard(c)
	}
	registration, err := c.registration(r.env.config.Limits.RegistrationTimeout)
	if err != nil {
		return nil, err
	}
	c.with = registration.Agent()
	a := newAgent(r.env, c, registration.PID)
	// The application waits for the end of this.
	first := append(slices.Clone(r.env.plan[a.who.Domain]), lttngagent.RegistrationDone{})
	return a, r.env.registry.enter(a, first)
}

// silence is how long an agent of the RFC has said nothing when it is asked for the first
// time. One of 2.0 registers as soon as it has connected, and has a second for that: what
// it would be asked in the words of the RFC would end its thread.
const silence = time.Second

// registerUnheard lets an agent in that doesn't say who it is, as those of the RFC: by
// its silence, and its answer to a list.
func (r *julReceiver) registerUnheard(c *conversation) (*agent, error) {
	if err := c.wait(time.Now().Add(r.env.silence)); err != nil {
		if errors.As(err, new(unaskedError)) {
			err = fmt.Errorf("%w: an agent of 2.0 registers so: leave out `protocol: rfc`", err)
		}
		return nil, err
	}
	c.with = lttngagent.Agent{Dialect: lttngagent.RFC, Domain: lttngagent.JUL}
	if _, err := c.list(r.env.config.Limits.ofList(), r.env.config.Limits.RegistrationTimeout); err != nil {
		return nil, err
	}
	a := newAgent(r.env, c, 0)
	return a, r.env.registry.enter(a, r.env.plan[a.who.Domain])
}

// refuse counts a connection on which no agent has registered, and says why where that
// is not ordinary: others connect, too, such as health checks.
func (r *julReceiver) refuse(conn net.Conn, err error) {
	why := refusalOf(err)
	if r.isStopping() {
		why = causeShutdown
	}
	r.env.telemetry.refused(why)
	if why == causeClosed || why == causeShutdown {
		return
	}
	if why == causeBadData {
		r.env.telemetry.badData(badRegistration)
	}
	if since, say := r.env.lines.refused.Say(r.env.now()); say {
		r.env.logger.Warn("A connection is closed before an agent has registered",
			zap.Error(err), zap.Stringer("peer", conn.RemoteAddr()), zap.Int("since_last_line", since))
	}
}

// refusalOf is why no agent has registered on a connection.
func refusalOf(err error) cause {
	var full *slots.Full
	switch {
	case errors.Is(err, errClosed):
		return causeShutdown
	case errors.As(err, &full):
		return causeMaxAgents
	default:
		return causeOf(err)
	}
}
