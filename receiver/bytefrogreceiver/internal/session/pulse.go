// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
)

// pulse watches whether the heartbeats of an agent arrive.
type pulse struct {
	silence time.Duration
	// heard is when a heartbeat was noticed last, and beats the number of heartbeats then.
	heard time.Time
	beats uint64
	// lastLook: the connection was read once more after the silence.
	lastLook bool
}

// check gets the number of heartbeats that have arrived. It returns until when to wait for the next
// one, and whether the agent counts as lost: no heartbeat has arrived for too long, and all received
// bytes were read.
func (p *pulse) check(beats uint64, now time.Time) (until time.Time, lost bool) {
	if beats != p.beats {
		p.beats, p.heard, p.lastLook = beats, now, false
	}
	if now.Sub(p.heard) < p.silence {
		return p.heard.Add(p.silence), false
	}
	if !p.lastLook {
		p.lastLook = true
		return now.Add(connreader.LastLook), false
	}
	p.heard, p.lastLook = now, false
	return now.Add(p.silence), true
}
