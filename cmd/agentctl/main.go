// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Command agentctl lists the agents of a collector with the extension agent_control, and sends them commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/callbraid/callbraid/cmd/internal/program"
	"github.com/callbraid/callbraid/internal/agentcontrol/api"
)

// Exit codes, beside 0.
const (
	exitError = 1
	// exitProblem: the collector refused the request.
	exitProblem = 2
)

func main() {
	ctx, end := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer end()
	if err := program.Complete(rootCommand()).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "agentctl:", printable(err.Error()))
		if errors.As(err, new(*api.Problem)) {
			os.Exit(exitProblem)
		}
		os.Exit(exitError)
	}
}
