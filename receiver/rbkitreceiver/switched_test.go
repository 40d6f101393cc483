// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
)

func TestProfilesOfAnEarlierLifeAreNotSwitchedOff(t *testing.T) {
	both := switches{true, true}
	on := func(s *switchedOn) {
		s.noteCommand(rbkit.StartMemoryProfile)
		s.noteCommand(rbkit.UseCPUTime)
		s.noteCommand(rbkit.StartCPUProfiling)
	}
	state := func(tracing, profiling bool) rbkit.HandshakeReply {
		return rbkit.HandshakeReply{ObjectTraceEnabled: tracing, CPUProfiling: profiling}
	}
	for name, c := range map[string]struct {
		do   func(*switchedOn)
		want switches
	}{
		"nothing":                        {func(*switchedOn) {}, switches{}},
		"both":                           {on, both},
		"one":                            {func(s *switchedOn) { s.noteCommand(rbkit.StartMemoryProfile) }, switches{tracing: true}},
		"another connection to the same": {func(s *switchedOn) { on(s); s.connected(false) }, both},
		"another life":                   {func(s *switchedOn) { on(s); s.connected(true) }, switches{}},
		"another life, found out later":  {func(s *switchedOn) { on(s); s.connected(false); s.connectedToOther() }, switches{}},
		"switched on in that one": {func(s *switchedOn) {
			on(s)
			s.connected(false)
			s.noteCommand(rbkit.StartMemoryProfile)
			s.connectedToOther()
		}, switches{tracing: true}},
		"others switched it off":            {func(s *switchedOn) { on(s); s.noteState(state(false, true)) }, switches{profiling: true}},
		"others switched it off meanwhile":  {func(s *switchedOn) { on(s); s.connected(false); s.noteState(state(true, false)) }, switches{tracing: true}},
		"it is seen to be on":               {func(s *switchedOn) { on(s); s.noteState(state(true, true)) }, both},
		"others switched it on":             {func(s *switchedOn) { s.noteState(state(true, true)) }, switches{}},
		"several connections, not the last": {func(s *switchedOn) { on(s); s.connected(false); s.connected(false) }, both},
	} {
		var s switchedOn
		c.do(&s)
		assert.Equal(t, c.want, s.all(), name)
	}
}

func TestProfilesThatOthersSwitchOnAfterARestartStayOn(t *testing.T) {
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
