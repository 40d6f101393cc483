// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/agentcontrol/agentcontroltest"
	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/metadata"
)

func TestServersFulfilTheContract(t *testing.T) {
	// The contract sends a handshake for each command, and so does the receiver.
	contract := agentcontroltest.Contract{Type: metadata.Type, Start: playObedient, Examples: []agentcontroltest.Example{
		{Command: string(rbkit.TriggerGC)}, {Command: string(rbkit.ObjectSpaceSnapshot)},
	}}
	for _, c := range commands {
		contract.Examples = append(contract.Examples, agentcontroltest.Example{Command: c.Name})
	}
	contract.Run(t)
}

// playObedient plays a server that carries out all commands, until it is silent.
func playObedient(t testing.TB, host component.Host) agentcontroltest.Played {
	var told atomic.Int64
	var silent atomic.Bool
	until := make(chan struct{})
	server := play(t, rbkitserver.Options{Hello: released, Commanded: func(c rbkit.Command) {
		if c == rbkit.Handshake {
			return
		}
		told.Add(1)
		if silent.Load() {
			<-until
		}
	}})
	b := newBed(t, following(server), func(b *bed, c *Config) {
		b.Host = host
		c.Timeout, c.StateInterval = patience, time.Hour
	})
	t.Cleanup(func() { close(until) })
	b.Await("the server to be known", func() bool {
		s := b.receiver.servers[0].Lives.Status()
		return s.Connected && s.Reply != nil && s.Process != nil
	})
	return agentcontroltest.Played{
		Shutdown: b.Shutdown, Silence: func() { silent.Store(true) },
		Die:      func() { go server.stop() }, // it waits for the held command
		Received: func() int { return int(told.Load()) },
		Records: func() (all []map[string]any) {
			for _, r := range b.Records(agentcontrol.EventName) {
				all = append(all, r.Attributes().AsRaw())
			}
			return all
		},
	}
}
