// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
)

func TestAnAgentIsConfiguredAndStarted(t *testing.T) {
	for version := uint8(bytefrog.MinVersion); version <= bytefrog.MaxVersion; version++ {
		t.Run(fmt.Sprintf("protocol %d", version), func(t *testing.T) {
			b := newBed(t, quickly, func(_ *bed, c *Config) {
				c.Agent.Inclusions = []string{"^com/example/", "^größe/"}
				c.Agent.Exclusions = []string{""}
				c.Agent.HeartbeatInterval = 250 * time.Millisecond
				c.Agent.DataConnections = 7
				c.Agent.BufferMemory = 1 << 20
				c.Agent.QueueRetryCount = 3
			})
			a := connect(b, version)
			want := bytefrog.AgentConfiguration{
				RunID: 1, HeartbeatInterval: 250 * time.Millisecond, Exclusions: []string{""},
				Inclusions: []string{"^com/example/", "^größe/"}, BufferMemoryBudget: 1 << 20, QueueRetryCount: 3, DataConnections: 7,
			}
			assert.Equal(t, want, a.configuration)
			a.finish()
			b.awaitRuns(0)
		})
	}
}

func TestARefusedVersionGetsTheSupportedOnes(t *testing.T) {
	b := newBed(t)
	for _, version := range []uint8{0, 3, 4, 255} {
		p := dial(t, b.address())
		p.send(bytefrog.Hello{Version: version})
		text := p.expectError()
		assert.Contains(t, text, fmt.Sprintf("version %d", version))
		assert.Contains(t, text, "versions 1 and 2")
		p.expectEnd()
	}
	assert.EqualValues(t, 4, b.Counter("refused"))
	assert.Empty(t, b.receiver.env.registry.list())
}

func TestAProjectHelloIsRefused(t *testing.T) {
	b := newBed(t)
	p := dial(t, b.address())
	p.write([]byte{byte(bytefrog.TypeProjectHello), 4, 0, 0, 0, 1})
	text := p.expectError()
	assert.Contains(t, text, "project hello (16) of protocol version 4")
	assert.Contains(t, text, "versions 1 and 2")
	p.expectEnd()
	assert.EqualValues(t, 1, b.Counter("refused"))
	assert.Zero(t, b.Counter("bad_data"))
	assert.Len(t, b.Log.FilterLevelExact(zapcore.WarnLevel).All(), 1)
}

func TestADataConnectionFromAnotherHostIsRefused(t *testing.T) {
	b := newBed(t, quickly)
	a := connect(b, 1)
	a.join().write(append(namesOne(), calls(0, 10)...))
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	conn, err := dialer.Dial("tcp4", b.address())
	if err != nil {
		t.Skipf("a second address is needed, such as by ifconfig lo0 alias 127.0.0.2: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	stranger := &peer{t: t, conn: conn, version: 1}
	stranger.send(bytefrog.DataHello{Run: a.configuration.RunID})
	assert.Equal(t, "expected data connections of run 1 from 127.0.0.1, as its control connection, got one from 127.0.0.2", stranger.expectError())
	stranger.expectEnd()
	assert.EqualValues(t, 1, b.Counter("refused"))
	assert.Len(t, b.Log.FilterLevelExact(zapcore.WarnLevel).All(), 1)
	// The run goes on, with both connections of its agent.
	a.join().write(calls(20, 10))
	a.finish()
	b.awaitRuns(0)
	s := b.only()
	assert.Len(t, s.events, 40)
	assert.Equal(t, callevent.CauseEnded, s.end(t).Cause)
}

func TestADataConnectionOfAnUnknownRunIsRefused(t *testing.T) {
	b := newBed(t)
	p := dial(t, b.address())
	p.send(bytefrog.DataHello{Run: 77})
	assert.Contains(t, p.expectError(), "run 77 is unknown")
	p.expectEnd()
}

func TestMoreDataConnectionsThanConfiguredAreRefused(t *testing.T) {
	b := newBed(t, quickly, withDataConnections(1))
	a := connect(b, 1)
	a.join()
	p := dial(t, b.address())
	p.send(bytefrog.DataHello{Run: a.configuration.RunID})
	assert.Contains(t, p.expectError(), "agent.data_connections")
	p.expectEnd()
	a.finish()
	b.awaitRuns(0)
}

func TestEventsMayArriveTogetherWithDataHello(t *testing.T) {
	b := newBed(t, quickly, withDataConnections(1))
	a := connect(b, 1)
	p := dial(t, b.address())
	p.write(append(append(encode(bytefrog.DataHello{Run: a.configuration.RunID}), namesOne()...), calls(0, 1000)...))
	p.expect(bytefrog.DataHelloReply{})
	a.data = append(a.data, p)
	b.Await("events", func() bool { return b.receiver.env.registry.lookup(1).State().Events == 2000 })
	a.finish()
	b.awaitRuns(0)
	assert.Len(t, b.only().events, 2000)
}

func TestAConnectionOfNoAgentIsClosedWithOneLogLine(t *testing.T) {
	// Only the silent connection has little time: on a busy machine the others need more.
	const short, long = 50 * time.Millisecond, time.Second
	cases := map[string]struct {
		bytes         []byte
		expected, got string
		timeout       time.Duration
	}{
		"events before the handshake": {calls(0, 1), "hello (0) or data hello (30)", "method entry (20)", receivertestbed.Patience},
		"HTTP":                        {[]byte("GET / HTTP/1.1\r\n\r\n"), "hello (0) or data hello (30)", "message type 71", receivertestbed.Patience},
		"a heartbeat":                 {encode(bytefrog.Heartbeat{Mode: bytefrog.ModeTracing}), "hello (0) or data hello (30)", "heartbeat (8)", receivertestbed.Patience},
		"half a hello, then silence":  {[]byte{0}, "hello (0) or data hello (30) within 1s", "nothing more", long},
		"silence":                     {nil, "hello (0) or data hello (30) within 50ms", "nothing more", short},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, func(_ *bed, config *Config) { config.Limits.HandshakeTimeout = c.timeout })
			p := dial(t, b.address())
			p.write(c.bytes)
			assert.Contains(t, p.expectError(), c.got)
			p.expectEnd()
			lines := b.Log.FilterLevelExact(zapcore.WarnLevel).All()
			require.Len(t, lines, 1)
			said := lines[0].ContextMap()["error"].(string)
			want := fmt.Sprintf("%s, byte %d: expected %s, got %s", p.conn.LocalAddr(), min(len(c.bytes), 1), c.expected, c.got)
			if len(c.bytes) > 1 {
				want = fmt.Sprintf("%s, byte 0: expected %s, got %s", p.conn.LocalAddr(), c.expected, c.got)
			}
			assert.Equal(t, want, said)
			assert.EqualValues(t, 1, b.Counter("bad_data"))
		})
	}
}

func TestAConnectionThatIsOpenedAndClosedIsNoError(t *testing.T) {
	b := newBed(t)
	for range 20 {
		dial(t, b.address()).close()
	}
	b.Await("connections", func() bool { return b.openConnections() == 0 })
	assert.Empty(t, b.Log.FilterLevelExact(zapcore.WarnLevel).All())
}

// openConnections is how many connections the receiver has, or the least that it
// might.
func (b *bed) openConnections() int64 { return b.Counter("connections") }

func TestLimitsOfConnectionsAndRunsAreNamed(t *testing.T) {
	t.Run("connections", func(t *testing.T) {
		b := newBed(t, quickly, func(_ *bed, c *Config) { c.Limits.MaxConnections = 2 })
		first, second := dial(t, b.address()), dial(t, b.address())
		b.Await("two connections", func() bool { return b.openConnections() == 2 })
		for version := uint8(bytefrog.MinVersion); version <= bytefrog.MaxVersion; version++ {
			agent := dial(t, b.address())
			agent.version = version
			agent.send(bytefrog.Hello{Version: version})
			agent.expectToBeTurnedAway("limits.max_connections is reached (2)")
			agent.close()
		}
		stranger := dial(t, b.address())
		stranger.send(bytefrog.Hello{Version: 3})
		assert.Contains(t, stranger.expectError(), "version 3 is not supported")
		stranger.expectEnd()
		data := dial(t, b.address())
		data.send(bytefrog.DataHello{Run: 1})
		assert.Contains(t, data.expectError(), "limits.max_connections is reached (2)")
		data.expectEnd()
		assert.EqualValues(t, 4, b.Counter("refused"))
		first.close()
		second.close()
		b.Await("no connection", func() bool { return b.openConnections() == 0 })
		a := connect(b, 1)
		a.finish()
		b.awaitRuns(0)
	})
	t.Run("connections that are not even heard", func(t *testing.T) {
		b := newBed(t, quickly, func(_ *bed, c *Config) { c.Limits.MaxConnections = 2 })
		first := connect(b, 1)
		first.join()
		var heard []*peer
		for range heardBeyond {
			heard = append(heard, dial(t, b.address()))
		}
		b.Await("connections", func() bool { return b.openConnections() == 2+heardBeyond })
		late := dial(t, b.address())
		heard[0].expectEnd()
		b.Await("the eviction to be counted", func() bool { return b.Counter("connections_evicted") == 1 })
		assert.Zero(t, b.Counter("refused"))
		for _, p := range append(heard[1:], late) {
			p.close()
		}
		b.Await("two connections", func() bool { return b.openConnections() == 2 })
		first.finish()
		b.awaitRuns(0)
	})
	t.Run("connections of one address", func(t *testing.T) {
		b := newBed(t, quickly, func(_ *bed, c *Config) { c.Limits.MaxConnectionsPerAddress = 2 })
		first := connect(b, 1)
		first.join()
		p := dial(t, b.address())
		p.send(bytefrog.Hello{Version: 1})
		p.expectToBeTurnedAway("limits.max_connections_per_address is reached (2)")
		p.close()
		first.finish()
		b.awaitRuns(0)
	})
	t.Run("runs", func(t *testing.T) {
		b := newBed(t, quickly, func(_ *bed, c *Config) { c.Limits.MaxRuns = 1 })
		a := connect(b, 1)
		p := dial(t, b.address())
		p.send(bytefrog.Hello{Version: 1})
		p.expectToBeTurnedAway("limits.max_runs is reached (1)")
		p.close()
		b.Await("its connection to be closed", func() bool { return b.openConnections() == 1 })
		a.finish()
		b.awaitRuns(0)
	})
}

func TestANewAgentReplacesAnUnprovenRun(t *testing.T) {
	b := newBed(t, quickly, func(b *bed, c *Config) { c.Limits.MaxRuns, b.timing.unproven = 3, 0 })
	busy := connect(b, 1)
	busy.join()
	alive := connect(b, 1)
	alive.control.send(bytefrog.Heartbeat{Mode: bytefrog.ModeInitializing})
	b.Await("its heartbeat", func() bool {
		return b.receiver.env.registry.lookup(alive.configuration.RunID).State().Proven
	})
	forged := connect(b, 1)
	agent := connect(b, 1)
	agent.join()
	assert.NotEqual(t, uint8(0), agent.configuration.RunID)
	assert.EqualValues(t, 1, b.Counter("runs_gave_way"))
	// Now all have proved that they are agents.
	p := dial(t, b.address())
	p.send(bytefrog.Hello{Version: 1})
	p.expectToBeTurnedAway("limits.max_runs is reached (3)")
	p.close()
	forged.control.close()
	busy.finish()
	alive.finish()
	agent.finish()
	b.awaitRuns(0)
}

func TestThousandsOfDroppedConnectionsAreFreed(t *testing.T) {
	b := newBed(t, quickly)
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	const connections = 2000
	for i := range connections {
		p := dial(t, b.address())
		switch i % 4 {
		case 1:
			p.write([]byte{0})
		case 2:
			p.send(bytefrog.DataHello{Run: 200})
		case 3:
			p.send(bytefrog.Hello{Version: 9})
		}
		p.close()
	}
	b.Await("their goroutines and files to be gone", func() bool {
		return b.openConnections() == 0 && runtime.NumGoroutine() <= goroutines+waitingGoroutines && openFiles(t) <= files
	})
}

// waitingGoroutines are those of the waiting itself.
const waitingGoroutines = 2

// openFiles is how many files the process has open, where the system tells.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

func TestRunsOfAgentsThatDisconnectImmediatelyAreFreed(t *testing.T) {
	b := newBed(t, quickly)
	for range 100 {
		p := dial(t, b.address())
		p.send(bytefrog.Hello{Version: 1})
		p.close()
	}
	b.Await("no runs and connections", func() bool {
		return len(b.receiver.env.registry.list()) == 0 && b.openConnections() == 0
	})
}

func TestAHelloDuringTheShutdownIsRefused(t *testing.T) {
	// Nothing here takes that long.
	b := newBed(t, quickly, func(b *bed, _ *Config) {
		b.timing.hello, b.timing.parting = receivertestbed.Patience/2, receivertestbed.Patience
	})
	var waiting []*peer
	for range 20 {
		waiting = append(waiting, dial(t, b.address()))
	}
	b.Await("connections", func() bool { return b.openConnections() == 20 })
	done := b.shutdownInBackground()
	b.Await("the shutdown", b.receiver.handshakes.areShortened)
	for _, p := range waiting {
		p.send(bytefrog.Hello{Version: 1})
	}
	for _, p := range waiting {
		p.expectToBeTurnedAway("shutting down")
		p.close()
	}
	require.NoError(t, <-done)
	assert.Zero(t, b.openConnections())
}

func TestAConnectionThatIsSilentDuringTheShutdownIsClosed(t *testing.T) {
	b := newBed(t, quickly)
	silent := dial(t, b.address())
	b.Await("a connection", func() bool { return b.openConnections() == 1 })
	done := b.shutdownInBackground()
	silent.expectEnd()
	require.NoError(t, <-done)
	assert.Empty(t, b.Log.FilterLevelExact(zapcore.WarnLevel).All())
}
