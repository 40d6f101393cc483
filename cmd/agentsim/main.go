// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Command agentsim plays the agents' side of the protocols that the collector's
// receivers speak: it replays captures of real agents, or generates load.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/callbraid/callbraid/cmd/internal/program"
)

// Exit codes, beside 0: the program ran to its end, traced or not.
const (
	exitError   = 1
	exitHung    = 3
	exitRefused = 4
	exitDied    = 5
	exitKilled  = 130 // as of a process that was interrupted
)

// exitCode carries an exit code; its text was printed already.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

func main() {
	err := program.Complete(rootCommand()).Execute()
	var code exitCode
	switch {
	case err == nil:
	case errors.As(err, &code):
		os.Exit(int(code))
	default:
		fmt.Fprintln(os.Stderr, "agentsim:", err)
		os.Exit(exitError)
	}
}
