// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"time"

	"github.com/callbraid/callbraid/test/attack"
)

// attackers returns one attacker of each kind, with a small load. `make attack` has them with a
// large one.
//
// Some balances have the counters of all instances of a component, those for attackers included. So the backend also receives and counts
// the spans of forged batches and the metrics of hostile Rbkit servers. Hostile servers of Greys and Arthas report each 5 s: with 1 s the simulated Greys server took half of a
// processor.
func attackers(p places) []attack.Attacker {
	const request = "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
	return []attack.Attacker{
		&attack.Nested{GRPC: p.hostile.otlpGRPC, HTTP: p.hostile.otlpHTTP, Sizes: []int{1}, Pause: time.Second},
		&attack.Names{Endpoint: p.hostile.bytefrog, Agents: 3, Bytes: 5 << 20, Stay: 5 * time.Second},
		&attack.Idle{Endpoint: p.living, Connections: 100},
		&attack.Idle{Endpoint: p.flames, Connections: 100},
		&attack.Relay{Endpoint: p.hostile.relay, Sessions: 2, Metadata: 100_000, Packets: 2},
		&attack.Services{Endpoint: p.hostile.otlpGRPC, Names: 2000},
		&attack.Batches{Endpoint: p.hostile.otlpGRPC, Streams: 1000},
		&attack.Rbkit{Endpoints: []string{p.hostile.publish}, Pause: time.Second},
		&attack.Greys{Endpoints: []string{p.hostile.greys}, Classes: 1000},
		&attack.Arthas{Endpoints: []string{p.hostile.arthas}, Classes: 1000},
		&attack.SlowReaders{Endpoint: p.prometheus, Readers: 10, Paths: []string{"/metrics"}},
		&attack.SlowWriters{Endpoint: p.flames, Writers: 10, Text: request},
		&attack.LogFlood{Endpoint: p.hostile.bytefrog, Peers: 1, Pause: time.Second},
	}
}

// attack runs an attacker again and again until ctx ends.
func (s *soak) attack(ctx context.Context, a attack.Attacker) {
	const rest = 5 * time.Second
	for ctx.Err() == nil {
		if err := a.Attack(ctx); err != nil && ctx.Err() == nil {
			s.t.Errorf("an attacker can't attack: %v", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(rest):
		}
	}
}

// published returns the number of messages that the hostile Rbkit servers published, and the number
// for which subscribers were too slow. The receiver counts them together with the messages of
// honest servers.
func (s *soak) published() (messages, dropped int64) {
	for _, a := range s.attackers {
		if servers, ok := a.(*attack.Rbkit); ok {
			messages, dropped = messages+servers.Published(), dropped+servers.Dropped()
		}
	}
	return messages, dropped
}
