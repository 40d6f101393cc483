// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
)

func TestWhatWasSwitchedOnInAnotherLifeIsNotSwitchedOff(t *testing.T) {
	both := switches{true, true}
	on := func(s *switched) {
		s.note(rbkit.StartMemoryProfile)
		s.note(rbkit.UseCPUTime)
		s.note(rbkit.StartCPUProfiling)
	}
	state := func(tracing, profiling bool) rbkit.HandshakeReply {
		return rbkit.HandshakeReply{ObjectTraceEnabled: tracing, CPUProfiling: profiling}
	}
	for name, c := range map[string]struct {
		do   func(*switched)
		want switches
	}{
		"nothing":                           {func(*switched) {}, switches{}},
		"both":                              {on, both},
		"one":                               {func(s *switched) { s.note(rbkit.StartMemoryProfile) }, switches{tracing: true}},
		"another connection to the same":    {func(s *switched) { on(s); s.connected(false) }, both},
		"another life":                      {func(s *switched) { on(s); s.connected(true) }, switches{}},
		"another life, found out later":     {func(s *switched) { on(s); s.connected(false); s.connectedToOther() }, switches{}},
		"switched on in that one":           {func(s *switched) { on(s); s.connected(false); s.note(rbkit.StartMemoryProfile); s.connectedToOther() }, switches{tracing: true}},
		"others switched it off":            {func(s *switched) { on(s); s.seen(state(false, true)) }, switches{profiling: true}},
		"others switched it off meanwhile":  {func(s *switched) { on(s); s.connected(false); s.seen(state(true, false)) }, switches{tracing: true}},
		"it is seen to be on":               {func(s *switched) { on(s); s.seen(state(true, true)) }, both},
		"others switched it on":             {func(s *switched) { s.seen(state(true, true)) }, switches{}},
		"several connections, not the last": {func(s *switched) { on(s); s.connected(false); s.connected(false) }, both},
	} {
		var s switched
		c.do(&s)
		assert.Equal(t, c.want, s.on(), name)
	}
}

func TestWhatOthersSwitchedOnAfterARestartStaysOn(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server), profiling)
	b.Await("the state", func() bool { s := server.State(); return s.ObjectTraceEnabled && s.CPUProfiling })
	again := released
	again.PID++
	again.ObjectTraceEnabled = true // somebody else was faster
	server.restart(rbkitserver.Options{Hello: again})
	b.Await("the state", func() bool { return server.State().CPUProfiling })
	b.Shutdown()
	assert.Equal(t, []rbkit.Command{rbkit.UseWallTime, rbkit.StartCPUProfiling, rbkit.StopCPUProfiling}, server.orders())
	assert.True(t, server.State().ObjectTraceEnabled)
}
