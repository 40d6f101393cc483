// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"errors"
	"net"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/slots"
)

const (
	// acceptPause is the first pause after a connection could not be accepted, as
	// when the process has too many open files; maxAcceptPause the longest.
	acceptPause    = 5 * time.Millisecond
	maxAcceptPause = time.Second
)

// accept takes connections until the listener is closed.
func (r *julReceiver) accept(listener net.Listener) {
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
		if since, say := r.env.lines.unaccepted.Say(r.env.now()); say {
			r.env.logger.Warn("A connection could not be accepted", zap.Error(err), zap.Duration("next_try_in", pause), zap.Int("since_last_line", since))
		}
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
		Closed: env.telemetry.evicted, Logger: env.logger,
	})
}

// Settings that bound connections.
const (
	settingMaxAgents  = "limits.max_agents"
	settingPerAddress = "limits.max_agents_per_address"
)

// begin gives a connection a slot and a goroutine. Where all slots have registered agents
// it closes the connection; the agent tries again after some seconds.
func (r *julReceiver) begin(conn net.Conn) {
	slot, full := r.slots.AdmitBeyond(conn)
	if full != nil {
		r.refuse(conn, full)
		_ = conn.Close()
		return
	}
	c := newConversation(conn, r.env.inventories)
	c.slot = slot
	if err := r.env.registry.meet(c); err != nil {
		r.refuse(conn, err)
		_ = conn.Close()
		slot.Release()
		return
	}
	r.env.telemetry.connections(1)
	r.serving.Go(func() {
		defer r.env.telemetry.connections(-1)
		defer slot.Release()
		defer r.env.registry.forget(c)
		defer c.close()
		r.serve(c)
	})
}

// sleep waits, and reports false when the receiver shuts down meanwhile.
func (r *julReceiver) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.env.stopping:
		return false
	}
}
