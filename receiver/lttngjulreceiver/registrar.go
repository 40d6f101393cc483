// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"errors"
	"net"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/slots"
	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/session"
)

// registrar accepts connections and registers agents.
type registrar struct {
	env      *environment
	plan     plan
	sessions *session.Group
	registry *registry
	slots    *slots.Slots
}

func newRegistrar(env *environment, plan plan) *registrar {
	return &registrar{env: env, plan: plan, sessions: newSessions(env), registry: newRegistry(), slots: newSlots(env)}
}

// accept accepts connections until the listener is closed.
func (r *registrar) accept(listener net.Listener) {
	slots.Accept(r.env.Serving, listener, r.admit, func(err error, pause time.Duration) {
		r.env.telemetry.acceptError()
		r.env.LogSeldom(&r.env.lines.unaccepted, r.env.Logger.Warn, "The receiver could not accept a connection", zap.Error(err), zap.Duration("next_try_in", pause))
	})
}

// newSlots returns the slots of connections.
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
	a := &agent{Session: r.sessions.Open(conn), env: r.env}
	if err := r.registry.addConnection(a.Session); err != nil {
		r.refuse(conn, err)
		a.Close()
		slot.Release()
		return
	}
	r.env.telemetry.connections(1)
	r.env.Go(func() {
		defer r.env.telemetry.connections(-1)
		defer slot.Release()
		defer r.registry.remove(a.Session)
		defer a.Close()
		r.serve(a, conn, slot)
	})
}

// serve registers the agent of a connection and serves it until its end.
func (r *registrar) serve(a *agent, conn net.Conn, slot *slots.Slot) {
	err := r.register(a, slot)
	if err != nil && slot.Gone() {
		return // already counted
	}
	if err != nil {
		r.refuse(conn, err)
		return
	}
	r.env.counts.registration(a.Agent().Domain)
	r.env.telemetry.agents(1)
	defer r.env.telemetry.agents(-1)
	a.serve()
}

// register reads the registration of a connection and adds its agent to the registry.
func (r *registrar) register(a *agent, slot *slots.Slot) error {
	if err := a.Register(slot.Sent); err != nil {
		return err
	}
	first := slices.Clone(r.plan[a.Agent().Domain])
	if a.Agent().Dialect == lttngagent.V2 {
		first = append(first, lttngagent.RegistrationDone{}) // the application waits for it
	}
	return r.registry.addAgent(a.Session, slot, first)
}

// refuse counts a connection without a registration, and logs it unless it is ordinary:
// health checks connect, too.
func (r *registrar) refuse(conn net.Conn, err error) {
	why := refusalOf(err)
	if r.env.IsStopping() {
		why = session.Shutdown
	}
	r.env.telemetry.refused(why)
	if why == session.Closed || why == session.Shutdown {
		return
	}
	if why == session.BadData {
		r.env.telemetry.badData(badRegistration)
	}
	r.env.LogSeldom(&r.env.lines.refused, r.env.Logger.Warn, "Connection closed before an agent registered",
		zap.Error(err), zap.Stringer("peer", conn.RemoteAddr()))
}

// causeMaxAgents: there are too many connections.
const causeMaxAgents session.Cause = "max_agents"

// refusalOf returns the reason for which no agent registered on a connection.
func refusalOf(err error) session.Cause {
	var full *slots.Full
	switch {
	case errors.Is(err, errClosed):
		return session.Shutdown
	case errors.As(err, &full):
		return causeMaxAgents
	default:
		return session.CauseOf(err)
	}
}
