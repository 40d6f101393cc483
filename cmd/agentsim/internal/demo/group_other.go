// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package demo

import "os/exec"

// ownGroup does nothing where there are no process groups.
func ownGroup(*exec.Cmd) {}
