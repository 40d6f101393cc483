// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package demo

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps a terminal's interrupt away from the collector: it is ended after the
// agent, not with it.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
