// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// program is a program to run in a system, with its user.
type program struct {
	user, group string
	environment map[string]string
	command     []string
}

// service is a program that runs in a system.
type service struct {
	command *exec.Cmd
	output  *os.File
	ended   chan error
}

// start runs a program, at the latest until the test ends.
func (s *system) start(t *testing.T, p program) *service {
	t.Helper()
	return startCommand(t, s.command(p))
}

func startCommand(t *testing.T, command *exec.Cmd) *service {
	t.Helper()
	v := &service{command: command, ended: make(chan error, 1)}
	var err error
	v.output, err = os.CreateTemp(t.TempDir(), "output")
	require.NoError(t, err)
	v.command.Stdout, v.command.Stderr = v.output, v.output
	require.NoError(t, v.command.Start())
	go func() { v.ended <- v.command.Wait() }()
	t.Cleanup(func() {
		if err := v.command.Process.Kill(); err == nil || !errors.Is(err, os.ErrProcessDone) {
			<-v.ended
		}
	})
	return v
}

func (v *service) pid() string { return strconv.Itoa(v.command.Process.Pid) }

// stop ends a service as systemd does, and expects that it ends well.
func (v *service) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, v.command.Process.Signal(syscall.SIGTERM))
	require.NoError(t, <-v.ended, "%s", v.said(t))
}

func (v *service) said(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(v.output.Name())
	require.NoError(t, err)
	return string(text)
}
