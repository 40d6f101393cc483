// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/internal/lttng/sim/logagent"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/session"
)

const (
	lineRefused = "Connection closed before an agent registered"
	lineClosed  = "The receiver closed the connection of an LTTng agent"
)

func words(values ...uint32) (b []byte) {
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

func TestAConnectionWithoutAnAgentIsClosed(t *testing.T) {
	cases := map[string]struct{ sent, want string }{
		"a domain that there isn't":  {string(words(9, 1, 2, 0)), "byte 0: expected a registration with domain 3 (jul), 4 (log4j), 5 (python) or 6 (log4j2), got 9"},
		"a version that there isn't": {string(words(3, 1, 3, 0)), "byte 8: expected a registration with version 2.0 of the protocol, got 3.0"},
		"a browser":                  {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "byte 0: expected a registration with domain "},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, nil)
			a := b.connect()
			a.send([]byte(test.sent))
			a.awaitClosed()
			line := b.AwaitLine(lineRefused)
			assert.Contains(t, line.ContextMap()["error"], test.want)
			assert.Equal(t, a.conn.LocalAddr().String(), line.ContextMap()["peer"])
			assert.EqualValues(t, 1, b.Counter("bad_data"))
			assert.EqualValues(t, 1, b.Counter("refused"))
			assert.Empty(t, b.records(""))
		})
	}
}

func TestAConnectionThatDoesNotRegisterInTimeIsClosed(t *testing.T) {
	for name, sent := range map[string][]byte{"nothing": nil, "half of a registration": words(3, 1)} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, func(c *Config) { c.Limits.RegistrationTimeout = 10 * time.Millisecond })
			a := b.connect()
			a.send(sent)
			a.awaitClosed()
			line := b.AwaitLine(lineRefused)
			assert.Equal(t, fmt.Sprintf("expected a registration of 16 bytes within 10ms: got %d", len(sent)), line.ContextMap()["error"])
			assert.EqualValues(t, 1, b.Counter("refused"))
		})
	}
}

func TestAConnectionOfAHealthCheckIsNotLogged(t *testing.T) {
	b := newBed(t, nil)
	require.NoError(t, b.connect().conn.Close())
	b.Await("it is counted", func() bool { return b.Counter("refused") == 1 })
	assert.Empty(t, b.Log.FilterMessage(lineRefused).All())
}

func TestAnAgentThatSendsWrongDataIsClosed(t *testing.T) {
	cases := map[string]struct {
		answer []byte
		want   string
	}{
		"a size of 4 GiB":             {words(1, 1<<32-1, 1), "byte 4: expected at most 1024 bytes of names, got 4294967295"},
		"more names than bytes":       {words(1, 2, 3), "byte 8: expected at most 2 names in 2 bytes, got 3"},
		"a name without a NUL":        {append(words(1, 4, 1), "a\x00bc"...), "byte 15: expected a NUL at the end of the last name"},
		"a name that is not UTF-8":    {append(words(1, 3, 1), "a\xff\x00"...), "byte 12: expected a name in UTF-8"},
		"more NULs than names":        {append(words(1, 4, 1), "a\x00b\x00"...), "byte 12: expected 1 names, each with a NUL, in 4 bytes, got 2 NULs"},
		"data without a command":      {append(words(1, 2, 1), "a\x00more"...), "byte 0: expected nothing before the next command, got something"},
		"something after a good list": {append(words(1, 0, 0), 0), "byte 0: expected nothing before the next command, got something"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, func(c *Config) {
				c.Limits.MaxLoggers, c.Limits.MaxListBytes = 10, kib
			})
			a := b.register(lttngagent.JUL)
			a.expect(lttngagent.RegistrationDone{})
			require.Equal(t, lttngagent.List{}, a.next())
			a.send(test.answer)
			a.awaitClosed()
			line := b.AwaitLine(lineClosed)
			assert.Contains(t, line.ContextMap()["error"], test.want)
			assert.EqualValues(t, os.Getpid(), line.ContextMap()["pid"])
			gone := b.awaitRecords(eventGone, 1)[0]
			assert.Equal(t, plog.SeverityNumberWarn, gone.severity)
			assert.Equal(t, "bad_data", gone.attributes[attributeCause])
			assert.Contains(t, gone.body, test.want)
			assert.EqualValues(t, 1, b.Counter("bad_data"))
			b.awaitNothingHeld()
		})
	}
}

// awaitNothingHeld waits until all connections are closed, and expects that their memory is free.
func (b *bed) awaitNothingHeld() {
	b.T.Helper()
	b.Await("all connections are closed", func() bool { return b.Counter("connections") == 0 && b.Counter("agents") == 0 })
	assert.Zero(b.T, b.receiver.registrar.sessions.NameBytes())
	assert.Empty(b.T, b.receiver.registrar.registry.agents())
}

func TestAnAgentWithTooManyLoggersStaysConnectedWithoutAList(t *testing.T) {
	large := map[string]struct {
		loggers []string
		want    string
	}{
		"too many names": {logagent.Names(11), "byte 8: expected at most 10 names in "},
		"too long names": {[]string{strings.Repeat("a", 2*mib), "b"}, "byte 4: expected at most 1024 bytes of names, got 2097155"},
	}
	for name, test := range large {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, func(c *Config) {
				c.Enable = []EnableRule{{Domain: "jul", Logger: "*"}}
				c.ListInterval = 10 * time.Millisecond
				// Names that are not held need no room.
				c.Limits.MaxLoggers, c.Limits.MaxListBytes, c.Limits.MaxInventoryBytes = 10, kib, mib
			})
			a := b.register(lttngagent.JUL)
			a.expect(enable(t, lttngagent.JUL, "*", ""), lttngagent.RegistrationDone{})
			for range 3 {
				require.Equal(t, lttngagent.List{}, a.next())
				a.list(test.loggers...)
			}
			require.Equal(t, lttngagent.List{}, a.next())
			a.list("one") // the other loggers disappeared
			assert.Equal(t, []string{"one"}, loggersOf(b.awaitRecords(eventAppeared, 1)))
			lines := b.Log.FilterMessageSnippet("The loggers of an LTTng agent are not listed").All()
			require.Len(t, lines, 1)
			assert.Contains(t, lines[0].ContextMap()["error"], test.want)
			assert.EqualValues(t, 3, b.receiver.env.counts.commands[lttngagent.JUL][lttngagent.CommandList][session.TooLarge].Load())
			assert.Empty(t, b.records(eventGone))
			require.NoError(t, a.conn.Close())
			b.awaitNothingHeld()
		})
	}
}

func TestAnAgentThatSendsAPartOfATooLargeListIsClosed(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.CommandTimeout = 100 * time.Millisecond
		c.Limits.MaxListBytes = kib
	})
	a := b.register(lttngagent.JUL)
	a.expect(lttngagent.RegistrationDone{})
	require.Equal(t, lttngagent.List{}, a.next())
	a.send(words(1, 1<<31-1, 1))
	a.awaitClosed()
	assert.Equal(t, "silent", b.awaitRecords(eventGone, 1)[0].attributes[attributeCause])
	b.awaitNothingHeld()
}

func TestAnAgentThatAnswersTwiceIsClosedBeforeTheNextCommand(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Enable = []EnableRule{{Domain: "jul", Logger: "a"}, {Domain: "jul", Logger: "b"}}
	})
	a := b.register(lttngagent.JUL)
	require.IsType(t, lttngagent.Enable{}, a.next())
	a.send(words(1, 1))
	a.awaitClosed()
	assert.Equal(t, "bad_data", b.awaitRecords(eventGone, 1)[0].attributes[attributeCause])
	assert.EqualValues(t, 1, b.Counter("bad_data"))
}

func TestAnAgentThatDoesNotAnswerInTimeIsClosedAndOthersAreNot(t *testing.T) {
	// Agents that answer must not exceed it.
	const timeout = 500 * time.Millisecond
	cases := map[string]struct{ answer, want string }{
		"never":       {"", "expected an answer to enable within 500ms: byte 0: expected 4 bytes of a return code, got 0"},
		"half of one": {"\x00\x00", "expected an answer to enable within 500ms: byte 0: expected 4 bytes of a return code, got 2"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, func(c *Config) {
				c.CommandTimeout = timeout
				c.Enable = []EnableRule{{Domain: "jul", Logger: "*"}}
				c.ListInterval = time.Hour
			})
			other := b.register(lttngagent.Python)
			go other.serve()
			a := b.register(lttngagent.JUL)
			require.IsType(t, lttngagent.Enable{}, a.next())
			a.send([]byte(test.answer))
			a.awaitClosed()
			line := b.AwaitLine(lineClosed)
			assert.Contains(t, line.ContextMap()["error"], test.want)
			gone := b.awaitRecords(eventGone, 1)[0]
			assert.Equal(t, "silent", gone.attributes[attributeCause])
			// It connects again.
			again := b.register(lttngagent.JUL)
			again.expect(enable(t, lttngagent.JUL, "*", ""), lttngagent.RegistrationDone{}, lttngagent.List{})
			go again.serve()
			b.Await("the two that answer", func() bool { return len(b.receiver.registrar.registry.agents()) == 2 })
			b.Shutdown()
		})
	}
}

func TestAnAgentThatAnswersByteByByteIsClosedAfterTheTimeout(t *testing.T) {
	b := newBed(t, func(c *Config) { c.CommandTimeout = 50 * time.Millisecond })
	a := b.register(lttngagent.JUL)
	a.expect(lttngagent.RegistrationDone{})
	require.Equal(t, lttngagent.List{}, a.next())
	a.send(words(1, 1<<20, 1))
	// The time does not begin again with each byte.
	for {
		if _, err := a.conn.Write([]byte{'a'}); err != nil {
			break
		}
	}
	assert.Contains(t, b.AwaitLine(lineClosed).ContextMap()["error"], "expected a list of loggers within 50ms: ")
	b.awaitNothingHeld()
}

func TestAnAgentThatEndsDuringAnAnswerIsDisconnected(t *testing.T) {
	b := newBed(t, nil)
	a := b.register(lttngagent.JUL)
	a.expect(lttngagent.RegistrationDone{})
	require.Equal(t, lttngagent.List{}, a.next())
	a.send(append(words(1, 100, 1), "half"...))
	require.NoError(t, a.conn.Close())
	gone := b.awaitRecords(eventGone, 1)[0]
	assert.Equal(t, "closed", gone.attributes[attributeCause])
	b.awaitNothingHeld()
}

func TestTooManyAgentsAreClosedAndLoggedOnce(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxAgents = 2 })
	for range 2 {
		b.register(lttngagent.JUL).expect(lttngagent.RegistrationDone{}, lttngagent.List{})
	}
	for range 20 {
		b.connect().awaitClosed()
	}
	b.Await("all are counted", func() bool { return b.Counter("refused") == 20 })
	lines := b.Log.FilterMessage(lineRefused).All()
	require.Len(t, lines, 1)
	assert.Equal(t, "limits.max_agents is reached (2)", lines[0].ContextMap()["error"])
}

func TestSilentConnectionsMakeRoomForAgents(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxAgents = 2 })
	first := b.register(lttngagent.JUL)
	first.expect(lttngagent.RegistrationDone{}, lttngagent.List{})
	silent := b.connect()
	b.Await("two connections", func() bool { return b.Counter("connections") == 2 })
	second := b.register(lttngagent.Python)
	silent.awaitClosed()
	second.expect(lttngagent.RegistrationDone{}, lttngagent.List{})
	b.Await("the eviction to be counted", func() bool { return b.Counter("connections_evicted") == 1 })
	assert.Zero(t, b.Counter("refused"))
	assert.Len(t, b.receiver.registrar.registry.agents(), 2)
}

func TestTheAgentWithMostNamesIsClosedAtTheLimit(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxInventoryBytes = mib })
	first := b.register(lttngagent.JUL)
	first.expect(lttngagent.RegistrationDone{})
	require.Equal(t, lttngagent.List{}, first.next())
	first.list(strings.Repeat("a", 600*kib))
	b.awaitRecords(eventAppeared, 1)

	second := b.register(lttngagent.Python)
	second.expect(lttngagent.RegistrationDone{})
	require.Equal(t, lttngagent.List{}, second.next())
	second.list(strings.Repeat("b", 500*kib))
	first.awaitClosed()
	assert.Equal(t, "memory", b.awaitRecords(eventGone, 1)[0].attributes[attributeCause])
	assert.Contains(t, b.AwaitLine(lineClosed).ContextMap()["error"], "limits.max_inventory_bytes is reached (1048576)")
	b.Await("the second alone", func() bool { return len(b.receiver.registrar.registry.agents()) == 1 })
	b.awaitRecords(eventAppeared, 2)

	require.NoError(t, second.conn.Close())
	b.awaitNothingHeld()
}

// Names of a list that never ends count too. Both lists together exceed the limit, but not the overdraft. So the second
// agent stays, even if the first frees its bytes late.
func TestNamesAreChargedAsTheyArrive(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxInventoryBytes = mib })
	var agents []*testAgent
	for _, bytes := range []int{600 * kib, 500 * kib} {
		a := b.register(lttngagent.JUL)
		a.expect(lttngagent.RegistrationDone{})
		require.Equal(t, lttngagent.List{}, a.next())
		a.send(append(words(1, mib, 1), strings.Repeat("a", bytes)...))
		agents = append(agents, a)
	}
	agents[0].awaitClosed()
	assert.Equal(t, "memory", b.awaitRecords(eventGone, 1)[0].attributes[attributeCause])
	b.Await("the second alone", func() bool { return len(b.receiver.registrar.registry.agents()) == 1 })
	b.Await("all bytes of the second", func() bool {
		used := b.receiver.registrar.sessions.NameBytes()
		return 500*kib < used && used < 501*kib
	})
	assert.Len(t, b.records(eventGone), 1)
}

func TestManyClosedConnectionsHoldNoMemory(t *testing.T) {
	b := newBed(t, nil)
	for range 2000 {
		conn, err := net.DialTimeout("tcp", b.address(), patience)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
	b.Await("all are counted", func() bool { return b.Counter("refused") == 2000 })
	b.awaitNothingHeld()
	b.register(lttngagent.JUL).expect(lttngagent.RegistrationDone{}, lttngagent.List{})
}

func TestAShutdownDoesNotWaitForSilentConnections(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.port")
	b := newBed(t, withPortFiles(file))
	a := b.connect()
	b.Await("it is accepted", func() bool { return b.Counter("connections") == 1 })
	// All timeouts are long.
	b.Shutdown()
	a.awaitClosed()
	assert.Empty(t, b.Log.FilterMessage(lineRefused).All())
	assert.NoFileExists(t, file)
}

// Log records have the rest of the time.
func TestAgentsHaveFourFifthsOfAShutdown(t *testing.T) {
	b := unstartedBed(t, func(c *Config) { c.ShutdownTimeout = 10 * time.Minute })
	assert.Equal(t, 8*time.Minute, b.receiver.kit.PeerTime)
}

func TestAnAgentThatCannotBeRestoredIsAbandonedAfterItsTime(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Enable = []EnableRule{{Domain: "jul", Logger: "a"}, {Domain: "jul", Logger: "b"}}
		c.ShutdownTimeout = 100 * time.Millisecond
	})
	a := b.register(lttngagent.JUL)
	a.expect(enable(t, lttngagent.JUL, "a", ""), enable(t, lttngagent.JUL, "b", ""), lttngagent.RegistrationDone{}, lttngagent.List{})
	b.Await("the list", func() bool { return len(b.records(eventRegistered)) == 1 })
	b.Shutdown()
	gone := b.awaitRecords(eventGone, 1)[0]
	assert.Equal(t, "shutdown", gone.attributes[attributeCause])
	assert.Equal(t, plog.SeverityNumberWarn, gone.severity)
	assert.Contains(t, gone.body, "2 of its commands are not undone: expected an answer to disable before a shutdown's time for agents is over")
	assert.Contains(t, b.AwaitLine(lineClosed).ContextMap()["error"], "2 of its commands")
}
