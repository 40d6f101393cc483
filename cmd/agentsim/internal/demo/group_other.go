// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package demo

import "os/exec"

// ownGroup does nothing on systems without process groups.
func ownGroup(*exec.Cmd) {}
