// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package cputime

import "time"

var begin = time.Now()

// process returns wall time, because processor time is not available here.
func process() time.Duration { return time.Since(begin) }
