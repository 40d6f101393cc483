// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/agentcontrol/agentcontroltest"
	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
)

// steerable is an option: servers are shown.
func steerable(b *bed, _ *Config) { b.Host = &agentcontroltest.Directory{} }

// steered is the server that is shown, when it is connected.
func (b *bed) steered() agentcontrol.Agent {
	b.T.Helper()
	all := b.Host.(*agentcontroltest.Directory).Agents()
	require.Len(b.T, all, 1)
	b.Await("the server to be connected", func() bool { return all[0].Snapshot().State != "disconnected" })
	return all[0]
}

func detail(a agentcontrol.Answer, name string) string {
	for _, d := range a.Details {
		if d.Name == name {
			return d.Value
		}
	}
	return ""
}

func TestAServerHasNineCommands(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server), steerable)
	a := b.steered()
	var told []rbkit.Command
	for _, c := range a.Snapshot().Commands {
		answer, err := agentcontroltest.Order(t.Context(), a, c.Name, nil)
		require.NoError(t, err, c.Name)
		assert.NotEmpty(t, answer.Message)
		assert.Equal(t, map[bool]string{true: "on", false: "off"}[server.State().ObjectTraceEnabled], detail(answer, "memory profile"))
		assert.Equal(t, map[bool]string{true: "on", false: "off"}[server.State().CPUProfiling], detail(answer, "CPU profile"))
		if c.Name != string(rbkit.Handshake) {
			told = append(told, rbkit.Command(c.Name))
		}
		disruptive := []string{string(rbkit.ObjectSpaceSnapshot), string(rbkit.TriggerGC), string(rbkit.StartMemoryProfile)}
		assert.Equal(t, slices.Contains(disruptive, c.Name), c.Disruptive, c.Name)
	}
	assert.Len(t, told, 8)
	assert.Equal(t, told, server.orders())
}

func TestTheEffectOfACommandLastsUntilTheEnd(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server), steerable, func(_ *bed, c *Config) { c.MemoryProfile = true })
	a := b.steered()
	b.Await("the memory profile", func() bool { return server.State().ObjectTraceEnabled })
	order := func(command rbkit.Command) {
		t.Helper()
		_, err := agentcontroltest.Order(t.Context(), a, string(command), nil)
		require.NoError(t, err)
	}
	order(rbkit.StopMemoryProfile)
	order(rbkit.UseCPUTime)
	order(rbkit.StartCPUProfiling)
	assert.Equal(t, "connected, CPU profile", a.Snapshot().State)
	again := released
	again.PID++
	server.restart(rbkitserver.Options{Hello: again})
	b.Await("the CPU profile of the next life", func() bool { return server.State().CPUProfiling })
	assert.Equal(t, []rbkit.Command{rbkit.UseCPUTime, rbkit.StartCPUProfiling}, server.orders())
	b.Shutdown()
	assert.False(t, server.State().CPUProfiling, "it is left as it was found")
	assert.NotContains(t, server.orders(), rbkit.StartMemoryProfile)
}

func TestAProfileOfACommandIsSwitchedOffAtTheEnd(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server), steerable)
	_, err := agentcontroltest.Order(t.Context(), b.steered(), string(rbkit.StartCPUProfiling), nil)
	require.NoError(t, err)
	assert.True(t, server.State().CPUProfiling)
	b.Shutdown()
	assert.False(t, server.State().CPUProfiling)
}

func TestAProfileOfOthersStaysOnAfterTheSameCommand(t *testing.T) {
	on := released
	on.ObjectTraceEnabled = true
	server := play(t, rbkitserver.Options{Hello: on})
	b := newBed(t, following(server), steerable)
	answer, err := agentcontroltest.Order(t.Context(), b.steered(), string(rbkit.StartMemoryProfile), nil)
	require.NoError(t, err)
	assert.Equal(t, "no change: the server was already in this state", answer.Message)
	b.Shutdown()
	assert.Empty(t, server.orders())
	assert.True(t, server.State().ObjectTraceEnabled)
}

func TestAnAcceptedCommandWithoutAnEffectIsRefused(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released, Deaf: true})
	b := newBed(t, following(server), steerable, func(_ *bed, c *Config) { c.StateInterval = 10 * time.Millisecond })
	_, err := agentcontroltest.Order(t.Context(), b.steered(), string(rbkit.StartCPUProfiling), nil)
	assert.Equal(t, agentcontrol.Refused, agentcontrol.ReasonOf(err), "%v", err)
	asked := len(server.Commands())
	b.Await("corrections of the state", func() bool { return len(server.Commands()) > asked+4 })
	assert.Equal(t, []rbkit.Command{rbkit.StartCPUProfiling}, server.orders(), "the receiver doesn't repeat it")
}

func TestACommandWithoutAnAnswerInTimeFails(t *testing.T) {
	begun := make(chan struct{}, 10)
	until := make(chan struct{})
	server := play(t, rbkitserver.Options{Hello: released, Commanded: func(c rbkit.Command) {
		if c == rbkit.TriggerGC {
			begun <- struct{}{}
			<-until
		}
	}})
	defer close(until)
	b := newBed(t, following(server), steerable, patiently)
	a := b.steered()
	ctx, giveUp := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := agentcontroltest.Order(ctx, a, string(rbkit.TriggerGC), nil)
		done <- err
	}()
	<-begun
	giveUp()
	assert.Equal(t, agentcontrol.NoAnswer, agentcontrol.ReasonOf(<-done))
}

// A command waits for other requests no longer than its context.
func TestACommandThatWaitsForOthersTooLongFails(t *testing.T) {
	for name, held := range map[string]rbkit.Command{"a command of another operator": rbkit.TriggerGC, "a question of the receiver": rbkit.Handshake} {
		t.Run(name, func(t *testing.T) {
			begun, until := make(chan struct{}, 10), make(chan struct{})
			var holds atomic.Bool
			server := play(t, rbkitserver.Options{Hello: released, Commanded: func(c rbkit.Command) {
				if holds.Load() && c == held {
					begun <- struct{}{}
					<-until
				}
			}})
			b := newBed(t, following(server), steerable, patiently, func(_ *bed, c *Config) { c.MemoryProfile, c.StateInterval = true, 10*time.Millisecond })
			defer close(until)
			a := b.steered()
			b.Await("the memory profile", func() bool { return server.State().ObjectTraceEnabled })
			holds.Store(true)
			first := make(chan error, 1)
			if held == rbkit.TriggerGC { // the next correction of the state sends a handshake
				go func() {
					_, err := agentcontroltest.Order(t.Context(), a, string(held), nil)
					first <- err
				}()
			}
			<-begun
			ctx, giveUp := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := agentcontroltest.Order(ctx, a, string(rbkit.StopMemoryProfile), nil)
				done <- err
			}()
			giveUp()
			err := <-done
			assert.Equal(t, agentcontrol.NoAnswer, agentcontrol.ReasonOf(err), "%v", err)
			assert.Empty(t, first, "the other one goes on")
		})
	}
}

// heldAt returns a server that doesn't answer a command, and a channel that reports its arrival.
func heldAt(t *testing.T, command rbkit.Command) (server *played, begun <-chan struct{}) {
	has, until := make(chan struct{}, 10), make(chan struct{})
	server = play(t, rbkitserver.Options{Hello: released, Commanded: func(c rbkit.Command) {
		if c == command {
			has <- struct{}{}
			<-until
		}
	}})
	t.Cleanup(func() { close(until) })
	return server, has
}

func TestASilentServerHasNotAnswered(t *testing.T) {
	server, _ := heldAt(t, rbkit.UseWallTime)
	b := newBed(t, following(server), steerable, func(_ *bed, c *Config) { c.Timeout, c.Clock = 500*time.Millisecond, ClockCPU })
	_, err := agentcontroltest.Order(t.Context(), b.steered(), string(rbkit.UseWallTime), nil)
	assert.Equal(t, agentcontrol.NoAnswer, agentcontrol.ReasonOf(err), "%v", err)
}

func TestAServerThatEndsDuringACommandIsLost(t *testing.T) {
	server, begun := heldAt(t, rbkit.TriggerGC)
	b := newBed(t, following(server), steerable, patiently)
	a := b.steered()
	done := make(chan error, 1)
	go func() {
		_, err := agentcontroltest.Order(t.Context(), a, string(rbkit.TriggerGC), nil)
		done <- err
	}()
	<-begun
	go server.stop() // it waits for the held command
	err := <-done
	assert.Equal(t, agentcontrol.Lost, agentcontrol.ReasonOf(err), "%v", err)
}

// A profile of the receiver that other clients switched off and on again is theirs.
func TestProfilesThatOthersSwitchOnMeanwhileStayOn(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server), steerable, func(_ *bed, c *Config) { c.StateInterval = time.Hour })
	a := b.steered()
	order := func(command rbkit.Command) {
		t.Helper()
		_, err := agentcontroltest.Order(t.Context(), a, string(command), nil)
		require.NoError(t, err)
	}
	order(rbkit.StartMemoryProfile)
	server.Answer([][]byte{[]byte(rbkit.StopMemoryProfile)})
	order(rbkit.Handshake)
	server.Answer([][]byte{[]byte(rbkit.StartMemoryProfile)})
	b.Shutdown()
	assert.True(t, server.State().ObjectTraceEnabled)
}

func TestAShutdownEndsOrders(t *testing.T) {
	begun, until := make(chan struct{}, 10), make(chan struct{})
	server := play(t, rbkitserver.Options{Hello: released, Commanded: func(c rbkit.Command) {
		if c == rbkit.ObjectSpaceSnapshot {
			begun <- struct{}{}
			<-until
		}
	}})
	defer close(until)
	b := newBed(t, following(server), steerable, patiently)
	a := b.steered()
	done := make(chan error, 1)
	go func() {
		_, err := agentcontroltest.Order(t.Context(), a, string(rbkit.ObjectSpaceSnapshot), nil)
		done <- err
	}()
	<-begun
	b.Shutdown()
	assert.Equal(t, agentcontrol.Lost, agentcontrol.ReasonOf(<-done))
	assert.Empty(t, b.Host.(*agentcontroltest.Directory).Agents())
	_, err := agentcontroltest.Order(t.Context(), a, string(rbkit.TriggerGC), nil)
	assert.Equal(t, agentcontrol.Lost, agentcontrol.ReasonOf(err))
	assert.NotContains(t, server.orders(), rbkit.TriggerGC)
}

func TestACommandForAMissingServerFails(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server), steerable)
	a := b.steered()
	server.stop()
	b.Await("the loss", func() bool { return a.Snapshot().State == "disconnected" })
	_, err := agentcontroltest.Order(t.Context(), a, string(rbkit.Handshake), nil)
	assert.Equal(t, agentcontrol.Lost, agentcontrol.ReasonOf(err), "%v", err)
}

func TestACommandForAServerThatNeverConnectedHasALogRecord(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	server.stop()
	b := newBed(t, following(server), steerable, func(_ *bed, c *Config) { c.ServiceName = "shop" })
	b.Host.(*agentcontroltest.Directory).Agents()[0].SendRecord(agentcontrol.Record{Order: agentcontrol.Order{Command: "trigger_gc"}})
	b.Await("the record", func() bool { return len(b.Records(agentcontrol.EventName)) == 1 })
	service, _ := b.Logs.AllLogs()[0].ResourceLogs().At(0).Resource().Attributes().Get(origin.AttributeServiceName)
	assert.Equal(t, "shop", service.Str())
}

func TestAServerWithoutRequestsHasNoCommands(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, func(_ *bed, c *Config) {
		one := server.config()
		one.Request = ""
		c.Servers = []ServerConfig{one}
	}, steerable)
	assert.Empty(t, b.steered().Snapshot().Commands)
}

func TestExtensionsShowTheStateOfAServer(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: released})
	b := newBed(t, following(server), steerable, func(_ *bed, c *Config) { c.ServiceName = "shop" })
	a := b.steered()
	server.publishObject(1, "String")
	b.Await("a message", func() bool {
		counters := a.Snapshot().Counters
		return len(counters) > 0 && counters[0].Value == 1
	})
	now := a.Snapshot()
	assert.Equal(t, "shop", now.Service)
	assert.Equal(t, released.PID, now.Process.PID)
	assert.Equal(t, released.ProcessName, now.Process.Name)
	assert.False(t, now.LastSeen.IsZero())
	assert.True(t, slices.ContainsFunc(now.Counters, func(c agentcontrol.Counter) bool { return c.Name == "lost messages" }))
	a.SendRecord(agentcontrol.Record{Agent: a.ID(), Order: agentcontrol.Order{Command: "trigger_gc", By: "alice"}, Message: "done"})
	b.Await("the record", func() bool { return len(b.Records(agentcontrol.EventName)) == 1 })
	r := b.Records(agentcontrol.EventName)[0]
	assert.Equal(t, "Command trigger_gc: done", r.Body().Str())
	by, _ := r.Attributes().Get(agentcontrol.AttributeBy)
	assert.Equal(t, "alice", by.Str())
}
