// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/javamethods/server"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/internal/javamethods/signals"
	"github.com/callbraid/callbraid/internal/javamethods/text"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/link"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/metadata"
)

// jvm requests the state of the JVM of one server by interval. Several goroutines may read it.
type jvm struct {
	dialer   *link.Dialer
	counters *counters.Counters
	// interval is 0 if no pipeline needs the state.
	interval time.Duration

	mu sync.Mutex
	// of is the process of the last state.
	of   *signals.Origin
	last *jvmState
}

// jvmState is the part of the answers that becomes metrics. It has a limited size.
type jvmState struct {
	runtime    arthas.Runtime
	pools      []arthas.MemoryPool
	collectors []arthas.GarbageCollector
	threads    map[threadGroup]int64
	// The numbers of classes, if they are known.
	classes map[string]int64
}

// threadGroup are the Java threads of one state.
type threadGroup struct {
	daemon bool
	state  metadata.AttributeJvmThreadState
}

// dashboardInterval is how long the server needs to end the command after its only result. It blocks a thread meanwhile.
const dashboardInterval = 100 * time.Millisecond

// follow requests the state of a process now and after each interval, until ctx ends.
func (j *jvm) follow(ctx context.Context, who session.Identity, of *server.Output) {
	if j.interval == 0 {
		return
	}
	for {
		state, err := j.request(ctx, who)
		switch {
		case err == nil && state != nil:
			j.mu.Lock()
			j.of, j.last = of.Origin, state
			j.mu.Unlock()
		case err != nil && ctx.Err() == nil:
			j.counters.Count(link.CountBrokenPages, 1)
		}
		if !pause(ctx, j.interval) {
			return
		}
	}
}

// request requests the state of a process. It is nil if another process answers, or answers nothing.
func (j *jvm) request(ctx context.Context, who session.Identity) (*jvmState, error) {
	properties := &arthas.JVM{}
	results, err := j.dialer.Exec(ctx, arthas.JVMCommand{})
	if err != nil {
		return nil, err
	}
	for _, result := range results {
		if of, is := result.(*arthas.JVM); is {
			properties = of
		}
	}
	if host, started := link.Machine(properties); host != who.Host || started != who.Started {
		return nil, nil // the session notices the other process
	}
	if results, err = j.dialer.Exec(ctx, arthas.DashboardCommand{Interval: dashboardInterval, Limit: 1}); err != nil {
		return nil, err
	}
	for _, result := range results {
		if of, is := result.(*arthas.Dashboard); is {
			return newJVMState(of, properties), nil
		}
	}
	return nil, nil
}

// state returns the last state of a process, or nil.
func (j *jvm) state(of *signals.Origin) *jvmState {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.of != of {
		return nil
	}
	return j.last
}

// maxPools limits the pools and the collectors of a JVM, which has about ten.
const maxPools = 100

func newJVMState(d *arthas.Dashboard, properties *arthas.JVM) *jvmState {
	s := &jvmState{
		runtime: d.Runtime, pools: slices.Clone(d.Pools[:min(len(d.Pools), maxPools)]),
		collectors: slices.Clone(d.Collectors[:min(len(d.Collectors), maxPools)]), threads: map[threadGroup]int64{}, classes: map[string]int64{},
	}
	for i := range s.pools {
		s.pools[i].Name = text.Short(s.pools[i].Name)
	}
	for i := range s.collectors {
		s.collectors[i].Name = text.Short(s.collectors[i].Name)
	}
	for i := range d.Threads {
		t := &d.Threads[i]
		state, known := metadata.MapAttributeJvmThreadState[strings.ToLower(t.State)]
		if t.ID > 0 && known {
			s.threads[threadGroup{t.Daemon, state}]++
		}
	}
	for i := range properties.Properties {
		p := &properties.Properties[i]
		var value int64
		switch p.Name {
		case classesLoaded, classesEverLoaded, classesUnloaded:
			if json.Unmarshal([]byte(p.JSON), &value) == nil {
				s.classes[p.Name] = value
			}
		}
	}
	return s
}

// Names of properties of the JVM.
const (
	classesLoaded     = "LOADED-CLASS-COUNT"
	classesEverLoaded = "TOTAL-LOADED-CLASS-COUNT"
	classesUnloaded   = "UNLOADED-CLASS-COUNT"
)
