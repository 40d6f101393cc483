// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/goleak"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
	"github.com/callbraid/callbraid/internal/receiverkit/servermemory"
	"github.com/callbraid/callbraid/internal/receiverkit/sharedreceiver"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/metadata"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestVersionsUpToTheLastReleasedOneAreOld(t *testing.T) {
	for version, want := range map[string]bool{
		"": true, "0.1.10": true, "0.1.9": true, "0.0.99": true, "0.1": true,
		"0.1.11": false, "0.1.10.1": false, "0.2": false, "1.0.0": false, "next": false,
	} {
		assert.Equal(t, want, isOld(version), "%q", version)
	}
}

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
		"no command":                     {func(*switchedOn) {}, switches{}},
		"both":                           {on, both},
		"one":                            {func(s *switchedOn) { s.noteCommand(rbkit.StartMemoryProfile) }, switches{tracing: true}},
		"another connection to the same": {func(s *switchedOn) { on(s); s.connected(false) }, both},
		"another life":                   {func(s *switchedOn) { on(s); s.connected(true) }, switches{}},
		"another life, seen later":       {func(s *switchedOn) { on(s); s.connected(false); s.connectedToOther() }, switches{}},
		"switched on in the other life": {func(s *switchedOn) {
			on(s)
			s.connected(false)
			s.noteCommand(rbkit.StartMemoryProfile)
			s.connectedToOther()
		}, switches{tracing: true}},
		"others switched it off":            {func(s *switchedOn) { on(s); s.noteState(state(false, true)) }, switches{profiling: true}},
		"others switched it off meanwhile":  {func(s *switchedOn) { on(s); s.connected(false); s.noteState(state(true, false)) }, switches{tracing: true}},
		"the server reports it as on":       {func(s *switchedOn) { on(s); s.noteState(state(true, true)) }, both},
		"others switched it on":             {func(s *switchedOn) { s.noteState(state(true, true)) }, switches{}},
		"several connections, not the last": {func(s *switchedOn) { on(s); s.connected(false); s.connected(false) }, both},
	} {
		var s switchedOn
		c.do(&s)
		assert.Equal(t, c.want, s.allProfiles(), name)
	}
}

// controlOf returns the control of a simulated server that has to have both profiles.
func controlOf(t *testing.T, options rbkitserver.Options) (*rbkitserver.Server, *control) {
	t.Helper()
	b := receivertestbed.New(t, metadata.Type)
	config := receiverkit.DefaultConfig()
	kit, err := receiverkit.New(b.Settings, &config, receiverkit.Names{Format: "rbkit", Scope: metadata.ScopeName})
	require.NoError(t, err)
	own, err := counters.New(kit)
	require.NoError(t, err)
	run := kit.NewRun(context.Background(), componenttest.NewNopHost(), sharedreceiver.Signals{})
	publish, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	request, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	server, served := rbkitserver.New(options), make(chan error, 1)
	ctx, end := context.WithCancel(context.Background())
	go func() { served <- server.Serve(ctx, publish, request) }()
	t.Cleanup(func() {
		end()
		assert.NoError(t, <-served)
		run.Finish()
		own.Shutdown()
	})
	var dialer net.Dialer
	return server, newControl(&Settings{
		Run: run, Counters: own, Request: request.Addr().String(), RestoreTimeout: time.Minute, MemoryProfile: true, CPUProfile: true,
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		},
		Connection: zmtp.Options{Timeout: receivertestbed.Patience, Heartbeat: receivertestbed.Patience, Limits: zmtp.Limits{Message: 1 << 20}},
	}, kit.Logger, servermemory.New(nil, 0))
}

func TestAProfileSwitchedOnDuringTheShutdownIsSwitchedOff(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	asked := make(chan struct{})
	server, c := controlOf(t, rbkitserver.Options{Commanded: func(command rbkit.Command) {
		if command == rbkit.StartCPUProfiling {
			cancel()
			<-asked // the receiver doesn't wait for the reply
		}
	}})
	ok := c.correctState(ctx, func(rbkit.HandshakeReply) {})
	close(asked)
	assert.False(t, ok)
	c.restore(context.Background())
	assert.Contains(t, server.Commands(), rbkit.StopMemoryProfile)
	assert.Contains(t, server.Commands(), rbkit.StopCPUProfiling)
}

func TestTheRestoreWaitsForACommand(t *testing.T) {
	server, c := controlOf(t, rbkitserver.Options{})
	require.True(t, c.correctState(t.Context(), func(rbkit.HandshakeReply) {}))
	require.True(t, server.State().CPUProfiling)
	require.NoError(t, c.stateLock.lock(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.restore(context.Background())
	}()
	select {
	case <-ended:
		assert.Fail(t, "restored during a command")
	case <-time.After(100 * time.Millisecond): // a restore without the lock would have ended
	}
	assert.True(t, server.State().CPUProfiling)
	c.stateLock.unlock()
	<-ended
	assert.False(t, server.State().CPUProfiling)
}

func TestAFailedCommandIsNotWantedLater(t *testing.T) {
	w := newWanted(&Settings{Clock: rbkit.UseCPUTime})
	takeBack := w.applyCommand(rbkit.UseWallTime)
	_, clock := w.current()
	assert.Equal(t, rbkit.UseWallTime, clock)
	takeBack()
	_, clock = w.current()
	assert.Equal(t, rbkit.UseCPUTime, clock)
}
