// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

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
)

// accepted returns the accepted side of a connection of this process with itself.
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

// findFirst returns the process at the other end of a connection as a new finder finds it.
func findFirst(conn net.Conn, pid uint32) Process {
	p, _ := NewFinder(true).Find(conn, time.Now(), pid, nil)
	return p
}

func TestTheProcessAtTheOtherEndIsFound(t *testing.T) {
	executable, err := os.Executable()
	require.NoError(t, err)
	for _, at := range []struct{ network, host string }{{"tcp4", "127.0.0.1"}, {"tcp6", "::1"}} {
		p := findFirst(accepted(t, at.network, at.host), uint32(os.Getpid()))
		assert.Equal(t, filepath.Base(executable), p.Name)
		assert.Equal(t, os.Args, p.Arguments)
	}
}

func TestAProcessWithoutTheConnectionIsNotDescribed(t *testing.T) {
	conn := accepted(t, "tcp4", "127.0.0.1")
	other := exec.Command("sleep", "1000")
	require.NoError(t, other.Start())
	t.Cleanup(func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	})
	for name, pid := range map[string]uint32{
		"another process": uint32(other.Process.Pid), "no process": 1<<31 - 1, "no ID": 0, "the first process": 1,
	} {
		assert.Equal(t, Process{}, findFirst(conn, pid), name)
	}
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	assert.Equal(t, Process{}, findFirst(ours, uint32(os.Getpid())), "no connection of this machine")
}

func TestOneLookupServesAllConnectionsThatExist(t *testing.T) {
	f, pid := NewFinder(true), uint32(os.Getpid())
	find := func(conn net.Conn, since time.Time) *openSockets {
		p, searched := f.Find(conn, since, pid, nil)
		require.True(t, searched)
		require.NotEmpty(t, p.Name)
		return f.sockets[pid]
	}
	first, second := accepted(t, "tcp4", "127.0.0.1"), accepted(t, "tcp4", "127.0.0.1")
	bothExist := time.Now()
	sockets := find(first, bothExist)
	assert.Same(t, sockets, find(second, bothExist))
	third := accepted(t, "tcp4", "127.0.0.1")
	now := time.Now()
	assert.NotSame(t, sockets, find(third, now), "its socket may be newer")
	assert.Len(t, f.order, 1)

	f.sockets[pid].started++
	p, _ := f.Find(third, now, pid, nil)
	assert.Equal(t, Process{}, p, "another process has the ID now")
}

func TestALookupEndsAfterItsTime(t *testing.T) {
	accepted(t, "tcp4", "127.0.0.1")
	_, sockets := readSockets(uint32(os.Getpid()), time.Now().Add(time.Minute))
	assert.NotEmpty(t, sockets)
	_, sockets = readSockets(uint32(os.Getpid()), time.Now())
	assert.Empty(t, sockets)
}

func TestAReplacedProgramHasItsName(t *testing.T) {
	assert.Equal(t, "java", programOf("/usr/bin/java (deleted)"))
	assert.Equal(t, "java", programOf("/usr/bin/java"))
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

func TestTwoLookupsRunAtTheSameTime(t *testing.T) {
	f := NewFinder(true)
	for range 2 {
		f.slots <- struct{}{}
	}
	select {
	case f.slots <- struct{}{}:
		assert.Fail(t, "a third lookup runs")
	default:
	}
}

func TestACancelledLookupDoesNotRun(t *testing.T) {
	conn, peer := net.Pipe()
	defer conn.Close()
	defer peer.Close()
	cancelled := make(chan struct{})
	close(cancelled)
	_, searched := NewFinder(true).Find(conn, time.Now(), 1, cancelled)
	assert.False(t, searched)
	_, searched = NewFinder(true).Find(conn, time.Now(), 1, nil)
	assert.True(t, searched)
}

func TestRememberedProcessesAreBounded(t *testing.T) {
	f := NewFinder(true)
	for pid := range uint32(maxRemembered + 1) {
		f.remember(pid, &openSockets{})
		f.remember(pid, &openSockets{})
	}
	assert.Len(t, f.sockets, maxRemembered)
	assert.Len(t, f.order, maxRemembered)
	assert.Nil(t, f.sockets[0], "the oldest is evicted")
}
