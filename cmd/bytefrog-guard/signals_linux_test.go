// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/test/testbed"
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

// runGuard runs one with a log, and waits until agents may connect.
func runGuard(t *testing.T, log *os.File) *process {
	p := &process{t: t, address: testbed.Address(t)}
	p.command = exec.Command(os.Args[0])
	p.command.Env = append(os.Environ(), asGuard+"=--collector 127.0.0.1:1 --listen "+p.address)
	p.command.Stderr = log
	require.NoError(t, p.command.Start())
	t.Cleanup(func() { _ = p.command.Process.Kill(); _ = p.command.Wait() })
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", p.address)
		if err != nil {
			return false
		}
		return assert.NoError(t, conn.Close())
	}, patience, 10*time.Millisecond)
	return p
}

// refuses has it refuse a data connection of nobody, and log that.
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

// endsInOrder tells it to end.
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

func TestALogWhoseReaderHasGoneDoesntEndTheGuard(t *testing.T) {
	near, far, err := os.Pipe()
	require.NoError(t, err)
	defer far.Close()
	require.NoError(t, near.Close())
	p := runGuard(t, far)
	p.refuses()
	p.endsInOrder()
}

func TestALogThatIsFullDoesntHoldTheGuardUp(t *testing.T) {
	near, far, err := os.Pipe()
	require.NoError(t, err)
	defer near.Close()
	defer far.Close()
	require.NoError(t, far.SetWriteDeadline(time.Now().Add(10*time.Millisecond)))
	for err == nil {
		_, err = far.Write([]byte{'\n'})
	}
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	p := runGuard(t, far)
	p.refuses()
	p.endsInOrder()
}

func TestSIGHUPDoesNothing(t *testing.T) {
	p := runGuard(t, nil)
	require.NoError(t, p.command.Process.Signal(syscall.SIGHUP))
	p.refuses()
	p.endsInOrder()
}
