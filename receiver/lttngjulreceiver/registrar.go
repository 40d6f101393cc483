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

// registrar accepts connections, and registers the agents at their other ends.
type registrar struct {
	env      *environment
	plan     plan
	registry *registry
	slots    *slots.Slots
}

func newRegistrar(env *environment, plan plan) *registrar {
	return &registrar{env: env, plan: plan, registry: newRegistry(), slots: newSlots(env)}
}

const (
	// acceptPause is the first pause after a connection could not be accepted, as
	// when the process has too many open files; maxAcceptPause the longest.
	acceptPause    = 5 * time.Millisecond
	maxAcceptPause = time.Second
)

// accept takes connections until the listener is closed.
func (r *registrar) accept(listener net.Listener) {
	var pause time.Duration
	for {
		conn, err := listener.Accept()
		if err == nil {
			pause = 0
			r.begin(conn)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		pause = min(max(2*pause, acceptPause), maxAcceptPause)
		r.env.telemetry.acceptError()
		r.env.LogSeldom(&r.env.lines.unaccepted, r.env.Logger.Warn, "The receiver could not accept a connection", zap.Error(err), zap.Duration("next_try_in", pause))
		if !r.sleep(pause) {
			return
		}
	}
}

// newSlots makes the slots of the receiver's connections.
func newSlots(env *environment) *slots.Slots {
	limits := &env.config.Limits
	return slots.New(slots.Options{
		Max: limits.MaxAgents, Setting: settingMaxAgents,
		PerAddress: limits.MaxAgentsPerAddress, SettingPerAddress: settingPerAddress,
		Closed: env.telemetry.evicted, Logger: env.Logger,
	})
}

// Settings that bound connections.
const (
	settingMaxAgents  = "limits.max_agents"
	settingPerAddress = "limits.max_agents_per_address"
)

// begin gives a connection a slot and a goroutine. Where all slots have registered agents
// it closes the connection; the agent tries again after some seconds.
func (r *registrar) begin(conn net.Conn) {
	slot, full := r.slots.AdmitBeyond(conn)
	if full != nil {
		r.refuse(conn, full)
		_ = conn.Close()
		return
	}
	c := newConversation(conn, r.env.inventories)
	c.slot = slot
	if err := r.registry.meet(c); err != nil {
		r.refuse(conn, err)
		_ = conn.Close()
		slot.Release()
		return
	}
	r.env.telemetry.connections(1)
	r.env.Go(func() {
		defer r.env.telemetry.connections(-1)
		defer slot.Release()
		defer r.registry.forget(c)
		defer c.close()
		r.serve(c)
	})
}

// sleep waits, and reports false when the receiver shuts down meanwhile.
func (r *registrar) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.env.Serving.Done():
		return false
	}
}

// serve is what the goroutine of a connection does: it finds out whose it is, and talks
// with the agent until its end.
func (r *registrar) serve(c *conversation) {
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
func (r *registrar) register(c *conversation) (*agent, error) {
	if r.env.config.dialect() == lttngagent.RFC {
		return r.registerUnheard(c)
	}
	registration, err := c.registration(r.env.config.Limits.RegistrationTimeout)
	if err != nil {
		return nil, err
	}
	c.with = registration.Agent()
	a := newAgent(r.env, c, registration.PID, announce)
	// The application waits for the end of this.
	first := append(slices.Clone(r.plan[a.who.Domain]), lttngagent.RegistrationDone{})
	return a, r.registry.enter(a, first)
}

// registerUnheard lets an agent in that doesn't say who it is, as those of the RFC: by
// its silence, and its answer to a list.
func (r *registrar) registerUnheard(c *conversation) (*agent, error) {
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
	a := newAgent(r.env, c, 0, announce)
	return a, r.registry.enter(a, r.plan[a.who.Domain])
}

// refuse counts a connection on which no agent has registered, and says why where that
// is not ordinary: others connect, too, such as health checks.
func (r *registrar) refuse(conn net.Conn, err error) {
	why := refusalOf(err)
	if r.env.IsStopping() {
		why = causeShutdown
	}
	r.env.telemetry.refused(why)
	if why == causeClosed || why == causeShutdown {
		return
	}
	if why == causeBadData {
		r.env.telemetry.badData(badRegistration)
	}
	r.env.LogSeldom(&r.env.lines.refused, r.env.Logger.Warn, "Connection closed before an agent registered",
		zap.Error(err), zap.Stringer("peer", conn.RemoteAddr()))
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
