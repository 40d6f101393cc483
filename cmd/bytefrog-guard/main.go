// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Command bytefrog-guard stands between agents of the Bytefrog tracer and collectors, so
// that a traced program survives its collector, and its trace goes on at the next.
package main

import (
	"fmt"
	"os"

	"github.com/callbraid/callbraid/internal/program"
)

func main() {
	if err := program.Complete(rootCommand()).Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "bytefrog-guard:", err)
		os.Exit(1)
	}
}
