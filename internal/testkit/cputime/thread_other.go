// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cputime

import "time"

// thread returns the time of the whole process, because that of a thread is not available here.
func thread() time.Duration { return process() }
