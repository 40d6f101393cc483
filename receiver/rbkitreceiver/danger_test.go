// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
)

// gem0110 is the reply of the released gem: without a version and without CPU profiles.
var gem0110 = rbkit.HandshakeReply{Dialect: rbkit.Released, ProcessName: "rb1.rb", WorkingDirectory: "/nowhere", PID: 4712}

const saidDangerous = "Settings may crash the program: on Ruby 3.1 an old Rbkit server causes a segmentation fault. " +
	"Remove the settings, unless this gem is known to work with this Ruby"

// The memory profile and the dump of the released gem crash a program on Ruby 3.1 when they are
// asked for.
var fatalOnRuby31 = []rbkit.Command{rbkit.StartMemoryProfile, rbkit.ObjectSpaceSnapshot}

func TestTheLogWarnsBeforeACommandCanCrashAProgram(t *testing.T) {
	for name, test := range map[string]struct {
		set  func(*Config)
		want []any
	}{
		"the memory profile": {func(c *Config) { c.MemoryProfile = true }, []any{"memory_profile"}},
		"a dump of all objects": {func(c *Config) { c.ObjectSpaceSnapshotInterval = 100 * time.Millisecond },
			[]any{"objectspace_snapshot_interval"}},
	} {
		t.Run(name, func(t *testing.T) {
			var started atomic.Pointer[bed]
			before := make(chan int, 1)
			server := play(t, rbkitserver.Options{Hello: gem0110, Fatal: fatalOnRuby31, Commanded: func(c rbkit.Command) {
				if c != rbkit.Handshake {
					select {
					case before <- started.Load().Log.FilterMessage(saidDangerous).Len():
					default:
					}
				}
			}})
			b := unstartedBed(t, following(server), func(_ *bed, c *Config) { test.set(c) })
			started.Store(b)
			b.Start()
			b.Await("the crash", server.Crashed)
			assert.Equal(t, 1, <-before, "warnings before the command")
			said := b.AwaitLine(saidDangerous).ContextMap()
			assert.Equal(t, test.want, said["settings"])
			assert.Equal(t, "rb1.rb", said["process"])
		})
	}
}

func TestDefaultsCrashNoServer(t *testing.T) {
	server := play(t, rbkitserver.Options{Hello: gem0110, Fatal: fatalOnRuby31})
	b := newBed(t, following(server), func(_ *bed, c *Config) { c.CPUProfile, c.TriggerGCInterval = true, 100*time.Millisecond })
	b.Await("garbage collections", func() bool {
		n := 0
		for _, c := range server.orders() {
			if c == rbkit.TriggerGC {
				n++
			}
		}
		return n > 2
	})
	assert.False(t, server.Crashed())
	assert.Zero(t, b.Log.FilterMessage(saidDangerous).Len())
}

func TestTheLogDoesNotWarnOfANewerServer(t *testing.T) {
	hello := gem0110
	hello.ServerVersion = "0.2.0"
	server := play(t, rbkitserver.Options{Hello: hello})
	b := newBed(t, following(server), func(_ *bed, c *Config) { c.MemoryProfile = true })
	b.Await("the memory profile", func() bool { return server.State().ObjectTraceEnabled })
	assert.Zero(t, b.Log.FilterMessage(saidDangerous).Len())
}
