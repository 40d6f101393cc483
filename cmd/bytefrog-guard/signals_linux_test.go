// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/componentkit/openlistener"
	"github.com/callbraid/callbraid/internal/testkit"
)

// asGuard has the test's program be the guard, with these arguments.
const asGuard = "BYTEFROG_GUARD_ARGUMENTS"

func TestMain(m *testing.M) {
	if arguments, ok := os.LookupEnv(asGuard); ok {
		os.Args = append(os.Args[:1], strings.Fields(arguments)...)
		main()
		return
	}
	os.Exit(m.Run())
}

// process is a guard in a process of its own.
type process struct {
	t       *testing.T
	address string
	command *exec.Cmd
}

// runGuard starts a guard on an address of this machine, with a log and further arguments, and
// waits until agents can connect.
func runGuard(t *testing.T, log *os.File, host string, arguments ...string) *process {
	p := &process{t: t, address: testkit.Address(t)}
	_, port, err := net.SplitHostPort(p.address)
	require.NoError(t, err)
	p.command = exec.Command(os.Args[0])
	p.command.Env = append(os.Environ(), asGuard+"=--collector 127.0.0.1:1 --listen "+host+":"+port+" "+strings.Join(arguments, " "))
	p.command.Stderr = log
	require.NoError(t, p.command.Start())
	t.Cleanup(func() { _ = p.command.Process.Kill(); _ = p.command.Wait() })
	require.True(t, testkit.Happens(func() bool {
		conn, err := net.Dial("tcp", p.address)
		if err != nil {
			return false
		}
		return assert.NoError(t, conn.Close())
	}))
	return p
}

// refuses connects a data connection of no agent, which the guard refuses and logs.
func (p *process) refuses() {
	p.t.Helper()
	conn, err := net.Dial("tcp", p.address)
	require.NoError(p.t, err)
	defer conn.Close()
	require.NoError(p.t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = conn.Write(bytefrog.DataHello{Run: 77}.AppendTo(nil))
	require.NoError(p.t, err)
	first := make([]byte, 1)
	_, err = conn.Read(first)
	require.NoError(p.t, err)
	assert.Equal(p.t, byte(bytefrog.TypeError), first[0])
}

// endsInOrder sends SIGTERM and waits for the end.
func (p *process) endsInOrder() {
	p.t.Helper()
	require.NoError(p.t, p.command.Process.Signal(syscall.SIGTERM))
	ended := make(chan error, 1)
	go func() { ended <- p.command.Wait() }()
	select {
	case err := <-ended:
		assert.NoError(p.t, err)
	case <-time.After(patience):
		require.Fail(p.t, "it doesn't end")
	}
}

func TestTheGuardContinuesWithoutAReaderOfItsLog(t *testing.T) {
	near, far, err := os.Pipe()
	require.NoError(t, err)
	defer far.Close()
	require.NoError(t, near.Close())
	p := runGuard(t, far, "127.0.0.1")
	p.refuses()
	p.endsInOrder()
}

func TestAFullLogDoesNotStopTheGuard(t *testing.T) {
	near, far, err := os.Pipe()
	require.NoError(t, err)
	defer near.Close()
	defer far.Close()
	require.NoError(t, far.SetWriteDeadline(time.Now().Add(10*time.Millisecond)))
	for err == nil {
		_, err = far.Write([]byte{'\n'})
	}
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	p := runGuard(t, far, "127.0.0.1")
	p.refuses()
	p.endsInOrder()
}

func TestSIGHUPDoesNothing(t *testing.T) {
	p := runGuard(t, nil, "127.0.0.1")
	require.NoError(t, p.command.Process.Signal(syscall.SIGHUP))
	p.refuses()
	p.endsInOrder()
}

func TestOneLineWarnsOfAnOpenListener(t *testing.T) {
	for _, c := range []struct {
		listen, metrics bool // beyond the machine
		want            []string
	}{
		{false, false, nil},
		{true, false, []string{"--listen"}},
		{false, true, []string{"--metrics"}},
		{true, true, []string{"--listen", "--metrics"}},
	} {
		log, err := os.Create(filepath.Join(t.TempDir(), "log"))
		require.NoError(t, err)
		defer log.Close()
		metrics := "localhost:0"
		if c.metrics {
			metrics = ":0"
		}
		arguments := []string{"--metrics", metrics}
		host := "127.0.0.1"
		if c.listen {
			host = "0.0.0.0"
		}
		p := runGuard(t, log, host, arguments...)
		p.refuses()
		p.endsInOrder()
		text, err := os.ReadFile(log.Name())
		require.NoError(t, err)
		said := string(text)
		assert.Equal(t, len(c.want), strings.Count(said, openlistener.WithoutTLS), said)
		for _, flag := range c.want {
			assert.Equal(t, 1, strings.Count(said, `"component": "bytefrog-guard `+flag+`"`), said)
		}
	}
}
