// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"sync"

	"github.com/callbraid/callbraid/internal/rbkit"
)

// wanted is what is to be on in a server: what the configuration says, until somebody who
// steers it says otherwise. It is for several goroutines.
type wanted struct {
	mu       sync.Mutex
	switches switches
	clock    Clock
}

func newWanted(config *Config) wanted {
	return wanted{switches: switches{tracing: config.MemoryProfile, profiling: config.CPUProfile}, clock: config.Clock}
}

// now is what is wanted now.
func (w *wanted) now() (switches, Clock) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.switches, w.clock
}

// say is told that somebody has the server told a command. It gives what takes that back,
// if nothing comes of it.
func (w *wanted) say(command rbkit.Command) (takeBack func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switches, clock := w.switches, w.clock
	takeBack = func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.switches, w.clock = switches, clock
	}
	switch command {
	case rbkit.StartMemoryProfile:
		w.switches.tracing = true
	case rbkit.StopMemoryProfile:
		w.switches.tracing = false
	case rbkit.StartCPUProfiling:
		w.switches.profiling = true
	case rbkit.StopCPUProfiling:
		w.switches.profiling = false
	case rbkit.UseWallTime:
		w.clock = ClockWall
	case rbkit.UseCPUTime:
		w.clock = ClockCPU
	}
	return takeBack
}
