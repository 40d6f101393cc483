// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/cobra"

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "agentsim",
		Short: "Play the agents' side of a tracer's protocol",
		Long: `agentsim plays the agents of runtime tracers, so that a collector can be tried,
tested and loaded without a traced program.

It exits with 0 if the traced program it plays ran to its end (traced or not),
3 if an action of the collector would hang the program forever, 4 if the collector
refused the agent, 5 if an action of the collector would end the program before its
main, and 1 for any other error.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(bytefrogCommand(), lttngCommand(), lttngAgentCommand(), rbkitCommand(), greysCommand(), arthasCommand(), demoCommand())
	return root
}

func bytefrogCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "bytefrog",
		Short: "Play agents of the Bytefrog tracer",
		Long: `Plays agents of the Bytefrog tracer: they read the configuration that the
collector sends, wait for start, open data connections, send heartbeats, and obey
control messages. When the collector leaves them in a way that makes a real agent
hang its program, they hang.`,
	}
	command.AddCommand(replayCommand(), loadCommand())
	return command
}
