// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/load"
)

func loadCommand() *cobra.Command {
	var (
		agent  agentFlags
		o      load.Options
		agents int
	)
	command := &cobra.Command{
		Use:   "load",
		Short: "Generate any number of calls",
		Long: `Generates the calls of programs that never were: threads walk up and down call
trees, as fast as the receiver reads or at a rate. By the same seed the calls are
the same.

Without --events and --duration it goes on until it is interrupted; the programs
then end in order.`,
		Example: `  agentsim bytefrog load --duration 10s
  agentsim bytefrog load --rate 100000 --duration 1m --exceptions 0.01
  agentsim bytefrog load --agents 20 --threads 8 --events 1000000
  agentsim bytefrog load --events 500000 --suspends 3 --loss 0.001 --seed 7`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			options, err := agent.options()
			if err != nil {
				return err
			}
			for _, flag := range []struct {
				name  string
				value int
			}{{"agents", agents}, {"threads", o.Threads}, {"depth", o.Depth}, {"functions", o.Functions}} {
				// load.Options has 0 for its default.
				if flag.value < 1 {
					return fmt.Errorf("--%s: expected at least 1, got %d", flag.name, flag.value)
				}
			}
			programs := make([]bytefrogagent.Program, agents)
			for i := range programs {
				if programs[i], err = load.New(o); err != nil {
					return fmt.Errorf("--%w", err)
				}
				o.Seed++
			}
			_, err = player{
				out:     c.OutOrStdout(),
				status:  os.Stderr,
				label:   "load",
				total:   o.Events * uint64(agents),
				verbose: agent.verbose,
			}.play(options, programs)
			return err
		},
	}
	agent.register(command)
	flags := command.Flags()
	flags.IntVar(&o.Threads, "threads", load.DefaultThreads, "threads of each program")
	flags.IntVar(&o.Depth, "depth", load.DefaultDepth, "depth of the deepest call")
	flags.IntVar(&o.Functions, "functions", load.DefaultFunctions, "functions of each program")
	flags.Float64Var(&o.Rate, "rate", 0, "call events in a second of each program (0: as many as the receiver reads)")
	flags.Uint64Var(&o.Events, "events", 0, "end after this many call events of each program (0: no end)")
	flags.DurationVar(&o.Duration, "duration", 0, "end after this time (0: no end)")
	flags.Float64Var(&o.Exceptions, "exceptions", 0, "share of returns that are exceptions, 0 to 1")
	flags.Float64Var(&o.Markers, "markers", 0, "share of events that are markers, 0 to 1")
	flags.Float64Var(&o.Loss, "loss", 0, "share of buffers that are lost, 0 to 1")
	flags.IntVar(&o.Suspends, "suspends", 0, "how often the program's own user suspends tracing")
	flags.IntVar(&o.ClockSteps, "clock-steps", 0, "how often the agent's clock is set, by an hour forward and back by turns")
	flags.IntVar(&agents, "agents", 1, "how many programs, each with an agent of its own")
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of the first program; each further one has the next")
	return command
}
