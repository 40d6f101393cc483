// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogagent

import (
	"fmt"
	"slices"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// handshake sends hello, reads the configuration and waits for start. It starts readControl and sendHeartbeats. It
// returns false if the program never starts.
func (r *run) handshake() bool {
	o := &orders{conn: r.control, version: r.options.Version}
	deadline := time.Now().Add(r.options.StartTimeout)
	r.control.SetReadDeadline(deadline) // an error means a lost connection, which the read reports
	r.writeControl(bytefrog.Hello{Version: r.options.Version})

	m, err := o.next()
	if err != nil {
		r.noteError(err)
		if isTimeout(err) {
			r.change(func(l *life) {
				l.hang(fmt.Sprintf("no configuration within %v: the program waits in front of its main", r.options.StartTimeout))
			})
			return false
		}
		r.fail("the HQ answered hello with neither configuration nor error: " + lossText(err))
		return false
	}
	switch m := m.(type) {
	case bytefrog.Configuration, bytefrog.ConfigurationV2:
		if !r.configure(m) {
			return false
		}
	case bytefrog.ErrorMessage:
		r.fail("the HQ refused the agent: " + m.Text)
		return false
	default:
		r.fail("the HQ answered hello with " + m.Type().String() + " instead of configuration")
		return false
	}
	r.sendHeartbeat()
	r.background.Add(2)
	go r.readControl(o)
	go r.sendHeartbeats()
	return r.awaitStart(deadline)
}

// configure applies the configuration. An invalid one ends the program.
func (r *run) configure(m bytefrog.Message) bool {
	c, err := bytefrog.ParseAgentConfiguration(m)
	if err != nil {
		r.noteError(err)
		r.fail("the agent cannot read its configuration: " + err.Error())
		return false
	}
	p, ok := newPool(int(c.BufferMemoryBudget), r.options.BufferSize)
	if !ok {
		r.fail(fmt.Sprintf("expected buffer memory for at least %d buffers of %d bytes, got %d bytes",
			minBuffers, minBufferSize, c.BufferMemoryBudget))
		return false
	}
	if c.DataConnections < 0 {
		r.fail(fmt.Sprintf("expected a configuration with at least 0 data connections, got %d", c.DataConnections))
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.configuration, r.pool = c, p
	r.queue = make(chan *Buffer, p.most)
	r.life.idle = tracesNothing(c)
	r.options.Log("configuration: run %d, heartbeats every %v, %d data connections, %d bytes for buffers",
		c.RunID, c.HeartbeatInterval, c.DataConnections, c.BufferMemoryBudget)
	return true
}

// tracesNothing reports whether a configuration has no data connections and excludes every class.
func tracesNothing(c bytefrog.AgentConfiguration) bool {
	return c.DataConnections == 0 && len(c.Inclusions) == 0 && slices.Contains(c.Exclusions, "")
}

// awaitStart waits before the program's main function.
func (r *run) awaitStart(deadline time.Time) bool {
	late := time.AfterFunc(time.Until(deadline), func() {
		r.change(func(l *life) {
			if l.state == waiting {
				l.hang(fmt.Sprintf("no start within %v: the program waits in front of its main", r.options.StartTimeout))
			}
		})
	})
	defer late.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.life.state == waiting {
		r.changed.Wait()
	}
	return !r.life.final()
}
