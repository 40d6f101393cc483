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

// accept accepts connections until the listener is closed.
func (r *registrar) accept(listener net.Listener) {
	var pause time.Duration
	for {
		conn, err := listener.Accept()
		if err == nil {
			pause = 0
			r.admit(conn)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		pause = min(max(2*pause, acceptPause), maxAcceptPause)
		r.env.telemetry.acceptError()
		r.env.LogSeldom(&r.env.lines.unaccepted, r.env.Logger.Warn, "The receiver could not accept a connection", zap.Error(err), zap.Duration("next_try_in", pause))
		if !r.pause(pause) {
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

// admit gives a connection a slot and a goroutine. If registered agents have all slots, it
// closes the connection; the agent tries again after some seconds.
func (r *registrar) admit(conn net.Conn) {
	slot, full := r.slots.AdmitBeyond(conn)
	if full != nil {
		r.refuse(conn, full)
		_ = conn.Close()
		return
	}
	c := newConversation(conn, r.env.inventories)
	c.slot = slot
	if err := r.registry.addConnection(c); err != nil {
		r.refuse(conn, err)
		_ = conn.Close()
		slot.Release()
		return
	}
	r.env.telemetry.connections(1)
	r.env.Go(func() {
		defer r.env.telemetry.connections(-1)
		defer slot.Release()
		defer r.registry.remove(c)
		defer c.close()
		r.serve(c)
	})
}

// pause waits, and returns false if the receiver shuts down meanwhile.
func (r *registrar) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.env.Serving.Done():
		return false
	}
}

// serve registers the agent of a connection and serves it until its end.
func (r *registrar) serve(c *conversation) {
	a, err := r.register(c)
	if err != nil && c.slot.Taken() {
		return // it is counted already
	}
	if err != nil {
		r.refuse(c.conn, err)
		return
	}
	r.env.counts.registered(a.identity.Domain)
	r.env.telemetry.agents(1)
	defer r.env.telemetry.agents(-1)
	a.serve()
}

// register reads the registration of a connection and adds its agent to the registry.
func (r *registrar) register(c *conversation) (*agent, error) {
	if r.env.config.dialect() == lttngagent.RFC {
		return r.registerUnheard(c)
	}
	registration, err := c.registration(r.env.config.Limits.RegistrationTimeout)
	if err != nil {
		return nil, err
	}
	c.agent = registration.Agent()
	a := newAgent(r.env, c, registration.PID, announce)
	// The application waits for the end of this.
	first := append(slices.Clone(r.plan[a.identity.Domain]), lttngagent.RegistrationDone{})
	return a, r.registry.addAgent(a, first)
}

// registerUnheard registers an agent of the RFC, which sends no registration: it is silent,
// and answers a list.
func (r *registrar) registerUnheard(c *conversation) (*agent, error) {
	if err := c.wait(time.Now().Add(r.env.silence)); err != nil {
		if errors.As(err, new(unexpectedDataError)) {
			err = fmt.Errorf("%w: an agent of 2.0 registers so: leave out `protocol: rfc`", err)
		}
		return nil, err
	}
	c.agent = lttngagent.Agent{Dialect: lttngagent.RFC, Domain: lttngagent.JUL}
	if _, err := c.list(r.env.config.Limits.ofList(), r.env.config.Limits.RegistrationTimeout); err != nil {
		return nil, err
	}
	a := newAgent(r.env, c, 0, announce)
	return a, r.registry.addAgent(a, r.plan[a.identity.Domain])
}

// refuse counts a connection without a registration, and logs it unless it is ordinary:
// health checks connect, too.
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
