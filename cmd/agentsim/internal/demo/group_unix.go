// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package demo

import (
	"os/exec"
	"syscall"
)

// ownGroup protects the collector from a terminal's interrupt: it ends after the agent, not
// together with it.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
