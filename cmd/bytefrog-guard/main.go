// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Command bytefrog-guard stands between agents of the Bytefrog tracer and collectors. A traced
// program survives its collector, and its trace continues at the next one.
package main

import (
	"fmt"
	"os"

	"github.com/callbraid/callbraid/cmd/internal/program"
)

func main() {
	log := newLines(os.Stderr)
	err := program.Complete(rootCommand(log)).Execute()
	if err != nil {
		fmt.Fprintln(log, "bytefrog-guard:", err)
	}
	_ = log.Sync()
	if err != nil {
		os.Exit(1)
	}
}
