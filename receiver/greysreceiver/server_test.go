// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/greys/gp"
	"github.com/callbraid/callbraid/internal/greys/sim/greysserver"
	"github.com/callbraid/callbraid/internal/testkit"
)

// played is a simulated server with sockets.
type played struct {
	*greysserver.Server
	endpoint string
}

// play starts a server until the test ends. Missing options have fast values.
func play(t testing.TB, o greysserver.Options) *played {
	t.Helper()
	if o.Speed == 0 {
		o.Speed = 50
	}
	o.EndDelay = time.Millisecond
	o.Codes = gp.UsualCodes()
	server, err := greysserver.New(o)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	p := &played{Server: server, endpoint: listener.Addr().String()}
	t.Cleanup(func() {
		end()
		assert.NoError(t, <-served)
	})
	require.True(t, testkit.Happens(func() bool { return len(p.Lives()) > 0 }))
	return p
}

// following returns a receiver of simulated servers, with codes for all requests of GP.
func following(t testing.TB, set func(*Config), servers ...*played) *bed {
	t.Helper()
	return newBed(t, func(c *Config) {
		c.Servers = nil
		for _, s := range servers {
			c.Servers = append(c.Servers, ServerConfig{Endpoint: s.endpoint})
		}
		c.GP.Codes = GPCodesConfig{Session: 7, Stack: 8, TTList: 9, TTDetail: 10}
		c.GP.RecordsInterval = 20 * time.Millisecond
		c.Timeout, c.AnswerTimeout = 5*time.Second, 2*time.Second
		c.CollectionInterval = 100 * time.Millisecond
		set(c)
	})
}

// sums returns the last forwarded calls and failures of all methods, by process.
func (b *bed) sums() map[int64][2]int64 {
	all := b.Metrics.AllMetrics()
	for _, metrics := range all[b.summed:] {
		for _, resource := range metrics.ResourceMetrics().All() {
			pid, _ := resource.Resource().Attributes().Get("process.pid")
			var sum [2]int64
			for _, m := range resource.ScopeMetrics().At(0).Metrics().All() {
				at := map[string]int{"java.method.calls": 0, "java.method.failures": 1}
				if i, is := at[m.Name()]; is {
					for _, p := range m.Sum().DataPoints().All() {
						sum[i] += p.IntValue()
					}
				}
			}
			before := b.sumsNow[pid.Int()]
			assert.GreaterOrEqual(b.T, sum[0], before[0], "sums never decrease")
			assert.GreaterOrEqual(b.T, sum[1], before[1])
			b.sumsNow[pid.Int()] = sum
		}
	}
	b.summed = len(all)
	return b.sumsNow
}

// reported returns the sums that the server has reported, by process.
func (p *played) reported() map[int64][2]int64 {
	sums := map[int64][2]int64{}
	for _, life := range p.Lives() {
		var sum [2]int64
		for _, of := range life.Reported {
			sum[0], sum[1] = sum[0]+of.Calls, sum[1]+of.Failed
		}
		sums[life.ProcessID] = sum
	}
	return sums
}

func (p *played) life() greysserver.Truth {
	lives := p.Lives()
	return lives[len(lives)-1]
}

func eachProtocol(t *testing.T, test func(*testing.T, Protocol)) {
	for _, protocol := range []Protocol{ProtocolGP, ProtocolConsole} {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			test(t, protocol)
		})
	}
}

func TestSumsEqualTheServersOverLostConnectionsAndRestarts(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol Protocol) {
		p := play(t, greysserver.Options{
			Program: greysserver.ProgramOptions{Rate: 1000, Calls: 1500, Failures: 0.1, Seed: 1}, ProcessID: 100,
			Faults: []greysserver.Fault{greysserver.Close, greysserver.Cut}, FaultEvery: 10, FaultTimes: 3,
		})
		b := following(t, func(c *Config) {
			c.Protocol = protocol
			c.Monitors = []MonitorConfig{monitor("com.example.*", "*")}
		}, p).start()
		// The faults have to end before the restart. Otherwise the receiver may not notice a restart at the moment of a
		// new command.
		b.Await("the faults to be over", func() bool { return b.point("replies") > 60 })
		// A life that ends before the monitor runs reports nothing. The next life is used then.
		complete := map[int64][2]int64{}
		for pid := int64(100); len(complete) < 2; pid++ {
			b.Await("the program to rest", func() bool { return p.life().ProcessID == pid && p.life().Rests })
			if p.reported()[pid][0] > 0 {
				b.Await("all reported calls to be forwarded", func() bool {
					complete[pid] = p.reported()[pid]
					return b.sums()[pid] == complete[pid]
				})
			}
			p.Restart()
		}
		b.Await("the receiver to notice the restarts", func() bool { return b.point("restarts") >= 2 })
		// The last cycle can end after that, and its report can be lost with the connection at the restart.
		for pid, before := range complete {
			reported, sums := p.reported()[pid], b.sums()[pid]
			for i := range sums {
				assert.GreaterOrEqual(t, sums[i], before[i])
				assert.LessOrEqual(t, sums[i], reported[i])
			}
		}
		b.Shutdown()
	})
}

func TestAServerIsRestoredAtTheEnd(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol Protocol) {
		p := play(t, greysserver.Options{Program: greysserver.ProgramOptions{Rate: 500}})
		b := following(t, func(c *Config) {
			c.Protocol = protocol
			c.Monitors = []MonitorConfig{monitor("com.example.shop.Service1", "*")}
			c.Stacks = []CallsConfig{some("com.example.shop.Service?", "*", 3)}
		}, p).start()
		b.Await("the stacks", func() bool { return len(b.Records("greys.stack")) == 3 })
		before := b.sums()[p.life().ProcessID][0]
		b.Await("the monitor to continue", func() bool { return b.sums()[p.life().ProcessID][0] > before+20 })
		assert.Zero(t, p.life().Resets, "the monitor needs the instrumentation of a class that both use")
		assert.Positive(t, p.life().Enhanced)
		b.Shutdown()
		assert.Zero(t, p.life().Enhanced)
		assert.Positive(t, p.life().Resets)
	})
}

func TestAutoDetectsTheProtocol(t *testing.T) {
	for of, want := range map[greysserver.Protocol]Protocol{greysserver.GP: ProtocolGP, greysserver.Console: ProtocolConsole, greysserver.Both: ProtocolGP} {
		t.Run(string(of), func(t *testing.T) {
			t.Parallel()
			p := play(t, greysserver.Options{Protocol: of})
			b := following(t, func(c *Config) {
				c.Monitors = []MonitorConfig{monitor("com.example.*", "*")}
				c.GP.ProbeTimeout = patience // a GP server answers, however late
				if of == greysserver.Console {
					c.GP.ProbeTimeout = 200 * time.Millisecond
				}
			}, p).start()
			line := b.awaitLogged("Connected to the server")
			assert.Equal(t, string(want), line.ContextMap()["protocol"])
			b.Await("calls", func() bool { return b.sums()[p.life().ProcessID][0] > 0 })
		})
	}
}

func TestTheErrorNamesTheServersOtherProtocol(t *testing.T) {
	p := play(t, greysserver.Options{Protocol: greysserver.Console})
	b := following(t, func(c *Config) {
		c.Protocol = ProtocolGP
		c.GP.ProbeTimeout = 100 * time.Millisecond
		c.Monitors = []MonitorConfig{monitor("com.example.*", "*")}
	}, p).start()
	line := b.awaitLogged("The server cannot be reached")
	assert.Contains(t, fmt.Sprint(line.ContextMap()["error"]), "this is the Greys text console, not GP: set protocol to console or auto")
}

// faults are the faults of each protocol.
var faults = map[Protocol][]greysserver.Fault{
	ProtocolGP: {
		greysserver.Close, greysserver.Cut, greysserver.Silence, greysserver.Failure, greysserver.Restart,
		greysserver.LongFrame, greysserver.WrongLength, greysserver.UnknownCode, greysserver.Unsupported,
		greysserver.WrongVersion, greysserver.Unasked, greysserver.BrokenData, greysserver.Gap,
	},
	ProtocolConsole: {
		greysserver.Close, greysserver.Cut, greysserver.Silence, greysserver.Failure, greysserver.Restart,
		greysserver.EndInData, greysserver.Half, greysserver.LongLine,
	},
}

// The receiver reconnects after every fault. Another server is not affected.
func TestFaultsOfAServerDoNotAffectAnother(t *testing.T) {
	for protocol, faults := range faults {
		for _, fault := range faults {
			t.Run(string(protocol)+" "+string(fault), func(t *testing.T) {
				t.Parallel()
				bad := play(t, greysserver.Options{
					Program: greysserver.ProgramOptions{Rate: 300, RecordEvery: 20, Classes: 3, Methods: 3},
					Faults:  []greysserver.Fault{fault}, FaultEvery: 30,
				})
				good := play(t, greysserver.Options{Program: greysserver.ProgramOptions{Rate: 200, Classes: 3}, ProcessID: 1000})
				b := following(t, func(c *Config) {
					c.Protocol = protocol
					c.Monitors = []MonitorConfig{monitor("com.example.*", "*")}
					c.Stacks = []CallsConfig{some("com.example.*", "*", -1)}
					c.Traces = []CallsConfig{some("com.example.shop.Service1", "*", -1)}
					c.Records = []CallsConfig{some("com.example.shop.Service2", "*", -1)}
					c.Classes = []ClassesConfig{{Class: "com.example.*"}}
					c.InventoryInterval = time.Second
					// Shorter times would lose the good server too when the machine stands still.
					c.AnswerTimeout = 2 * time.Second
					c.GP.Heartbeat = time.Second
				}, bad, good).start()
				b.Await("calls of the good server", func() bool {
					sums := b.sums()[1000]
					return sums[0] > 100 && sums[0] <= good.reported()[1000][0]
				})
				if fault == greysserver.WrongVersion {
					b.Await("the bad server to be given up", func() bool { return b.phase() == "given_up" })
				} else {
					replies := b.point("replies")
					b.Await("more answers of the bad server", func() bool { return b.point("replies") > replies+100 })
					assert.NotEqual(t, "given_up", b.phase())
				}
				assert.Equal(t, 1, b.Log.FilterMessage("Connected to the server").FilterField(zap.String("server", good.endpoint)).Len())
			})
		}
	}
}

// A program in a container has the same process ID after each restart.
func TestARestartWithTheSameProcessIDIsNoticed(t *testing.T) {
	p := play(t, greysserver.Options{Protocol: greysserver.Console, ProcessID: 1, SameID: true})
	b := following(t, func(c *Config) {
		c.Monitors = []MonitorConfig{monitor("com.example.*", "*")}
		c.Traces = []CallsConfig{some("com.example.*", "*", 3)}
		c.Protocol = ProtocolConsole
	}, p).start()
	roots := func() (roots int) {
		for _, s := range b.Spans() {
			if s.ParentSpanID().IsEmpty() {
				roots++
			}
		}
		return roots
	}
	for life := range 3 {
		b.Await("call trees of each life", func() bool { return roots() == 3*(life+1) })
		assert.EqualValues(t, life, b.point("restarts"))
		p.Restart()
	}
}

// A thread can pause between the end of a call and its index, so times of recorded calls have no order. Each call must
// be forwarded exactly once.
func TestEachRecordedCallIsForwardedOnce(t *testing.T) {
	p := play(t, greysserver.Options{ProcessID: 7, Program: greysserver.ProgramOptions{Rate: 1000, Calls: 2000, RecordEvery: 10}})
	b := following(t, func(c *Config) {
		c.Protocol = ProtocolGP
		c.Records = []CallsConfig{some("com.example.*", "*", -1)}
	}, p).start()
	b.Await("the program to rest", func() bool { return p.life().Rests })
	recorded := int(p.life().Recorded)
	b.Await("all recorded calls", func() bool { return len(b.Spans()) >= recorded })
	again := b.point("records_repeated")
	b.Await("the list to be repeated", func() bool { return b.point("records_repeated") >= again+2*int64(recorded) })
	assert.Len(t, b.Spans(), recorded)
}
