// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// accepted is a connection on which this process is at both ends: the one that was
// accepted.
func accepted(t *testing.T, network, host string) net.Conn {
	t.Helper()
	listener, err := net.Listen(network, net.JoinHostPort(host, "0"))
	if err != nil {
		t.Skipf("this machine has no %s: %v", host, err)
	}
	defer listener.Close()
	dialed, err := net.Dial(network, listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = dialed.Close() })
	conn, err := listener.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// processOf is what a first look tells of a process that is said to be at the other end of
// a connection.
func processOf(conn net.Conn, pid uint32) process {
	p, _ := newLookups(true).processOf(newConversation(conn, newInventories(0, nil)), pid, nil)
	return p
}

func TestTheProcessAtTheOtherEndIsFound(t *testing.T) {
	executable, err := os.Executable()
	require.NoError(t, err)
	for _, at := range []struct{ network, host string }{{"tcp4", "127.0.0.1"}, {"tcp6", "::1"}} {
		p := processOf(accepted(t, at.network, at.host), uint32(os.Getpid()))
		assert.Equal(t, filepath.Base(executable), p.name)
		assert.Equal(t, os.Args, p.arguments)
	}
}

func TestNothingIsInventedOfAProcessThatHasNotTheConnection(t *testing.T) {
	conn := accepted(t, "tcp4", "127.0.0.1")
	other := exec.Command("sleep", "1000")
	require.NoError(t, other.Start())
	t.Cleanup(func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	})
	for name, pid := range map[string]uint32{
		"another process": uint32(other.Process.Pid), "no process": 1<<31 - 1, "none told": 0, "the first process": 1,
	} {
		assert.Equal(t, process{}, processOf(conn, pid), name)
	}
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	assert.Equal(t, process{}, processOf(ours, uint32(os.Getpid())), "no connection of this machine")
}

func TestAProcessIsLookedAtOnceForAllConnectionsThatAreThere(t *testing.T) {
	l, pid := newLookups(true), uint32(os.Getpid())
	look := func(c *conversation) *processSockets {
		p, looked := l.processOf(c, pid, nil)
		require.True(t, looked)
		require.NotEmpty(t, p.name)
		return l.sockets[pid]
	}
	first := newConversation(accepted(t, "tcp4", "127.0.0.1"), newInventories(0, nil))
	second := newConversation(accepted(t, "tcp4", "127.0.0.1"), newInventories(0, nil))
	sighting := look(first)
	assert.Same(t, sighting, look(second))
	third := newConversation(accepted(t, "tcp4", "127.0.0.1"), newInventories(0, nil))
	assert.NotSame(t, sighting, look(third), "its socket may be newer")
	assert.Len(t, l.order, 1)

	l.sockets[pid].started++
	p, _ := l.processOf(third, pid, nil)
	assert.Equal(t, process{}, p, "the ID is another process's by now")
}

func TestALookAtAProcessIsOverWhenItsTimeIs(t *testing.T) {
	accepted(t, "tcp4", "127.0.0.1")
	_, sockets := readSockets(uint32(os.Getpid()), time.Now().Add(patience))
	assert.NotEmpty(t, sockets)
	_, sockets = readSockets(uint32(os.Getpid()), time.Now())
	assert.Empty(t, sockets)
}

func TestAProgramThatWasReplacedWhileItRunsHasItsName(t *testing.T) {
	assert.Equal(t, "java", programOf("/usr/bin/java (deleted)"))
	assert.Equal(t, "java", programOf("/usr/bin/java"))
}

func TestAnAgentWhoseProcessIsNotKnownHasItsLanguageAndNoInventedName(t *testing.T) {
	b := newBed(t, nil)
	a := b.connect()
	a.send(lttngagent.NewRegistration(lttngagent.Python, 1).AppendTo(nil))
	a.expect(lttngagent.RegistrationDone{}, lttngagent.List{})
	r := b.awaitRecords(eventRegistered, 1)[0]
	assert.Equal(t, "unknown_service:python", r.resource[attributeServiceName])
	assert.EqualValues(t, 1, r.resource[attributeProcessID])
	assert.NotContains(t, r.resource, attributeExecutableName)
	assert.NotContains(t, r.resource, attributeCommandArgs)
}

func TestTheCommandLineIsSentWhereItIsAskedFor(t *testing.T) {
	b := newBed(t, func(c *Config) { c.ProcessCommandArgs = true })
	b.register(lttngagent.JUL).expect(lttngagent.RegistrationDone{}, lttngagent.List{})
	r := b.awaitRecords(eventRegistered, 1)[0]
	require.Contains(t, r.resource, attributeCommandArgs)
	assert.Equal(t, os.Args[0], r.resource[attributeCommandArgs].([]any)[0])
}

func TestWhatTheConfigurationSaysOfAResourceWins(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.ServiceName, c.ProcessCommandArgs = "shop", true
		c.ResourceAttributes = map[string]any{"process.pid": 7, "host.name": "elsewhere", "process.command_args": "hidden", "team": "a"}
	})
	b.register(lttngagent.JUL).expect(lttngagent.RegistrationDone{}, lttngagent.List{})
	r := b.awaitRecords(eventRegistered, 1)[0]
	assert.Equal(t, "shop", r.resource[attributeServiceName])
	assert.EqualValues(t, 7, r.resource[attributeProcessID])
	assert.Equal(t, "elsewhere", r.resource[attributeHostName])
	assert.Equal(t, "hidden", r.resource[attributeCommandArgs])
	assert.Equal(t, "a", r.resource["team"])
}

func TestALongCommandLineIsCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cmdline")
	require.NoError(t, os.WriteFile(path, []byte("java\x00-D\xff\x00"+strings.Repeat("x", maxCommandLine)+"\x00"), 0o600))
	arguments := commandLine(path)
	require.Len(t, arguments, 3)
	assert.Equal(t, []string{"java", "-D\uFFFD"}, arguments[:2])
	assert.Len(t, arguments[2], maxCommandLine-len("java\x00-D\xff\x00"))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	assert.Nil(t, commandLine(path))
}
