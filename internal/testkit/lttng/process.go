// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttng

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callbraid/callbraid/internal/testkit"
)

// process is a process of the daemons' user that leads its own group. Its standard error, and a daemon's standard
// output, is written to a file.
type process struct {
	command *exec.Cmd
	log     string
	// exited is closed when it has ended. exit is the result.
	exited chan struct{}
	exit   error
}

// start starts a command of Daemons.command.
func start(t testing.TB, command *exec.Cmd, log string) *process {
	t.Helper()
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() // the process has its own
	if command.Stderr = file; command.Stdout == nil {
		command.Stdout = file
	}
	p := &process{command: command, log: log, exited: make(chan struct{})}
	if err := command.Start(); err != nil {
		t.Fatalf("start %s: %v", command, err)
	}
	go func() {
		p.exit = command.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.terminate()
		if t.Failed() {
			t.Logf("Output of %s:\n%s", filepath.Base(command.Path), p.said())
		}
	})
	return p
}

func (p *process) hasEnded() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// terminate requests the end of the process. If the process or one of its children does not end, it kills all of
// them.
func (p *process) terminate() {
	if !p.hasEnded() {
		_ = p.command.Process.Signal(syscall.SIGTERM) // an error means that it has ended
		select {
		case <-p.exited:
		case <-time.After(testkit.Patience):
		}
	}
	p.kill()
}

// kill ends the process and all processes that it has started.
func (p *process) kill() {
	err := syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL)
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		_ = p.command.Process.Kill()
	}
	<-p.exited
}

// said returns the output of the process.
func (p *process) said() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}

// await waits until a daemon is ready.
func (p *process) await(t testing.TB, what string, ready func() error) {
	t.Helper()
	testkit.Eventually(t, what, func() (bool, string) {
		if p.hasEnded() {
			t.Fatalf("%s ended at its start: %v\n%s", p.command, p.exit, p.said())
		}
		err := ready()
		return err == nil, fmt.Sprint(err)
	})
}
