// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callbraid/callbraid/internal/agentcontrol/api"
)

const defaultEndpoint = "http://localhost:8766"

// Environment variables with the defaults of flags.
const (
	endpointVariable = "AGENTCTL_ENDPOINT"
	tokenVariable    = "AGENTCTL_TOKEN"
)

// Kinds of output.
const (
	outputTable = "table"
	outputJSON  = "json"
)

func rootCommand() *cobra.Command {
	var connect connectFlags
	root := &cobra.Command{
		Use:   "agentctl",
		Short: "Show the traced programs of a collector, and send them commands",
		Long: `agentctl lists the agents of a collector that has the extension agent_control, and
sends them commands. The first four digits of an agent's ID are enough, or as many
as only this agent has.

It exits with 0 after success, with 2 if the collector refuses with a reason, and
with 1 for any other error.`,
		Example: `  agentctl list
  agentctl watch --service shop
  agentctl commands 3f2a
  agentctl do 3f2a suspend
  agentctl do 77b0 enable logger=com.example.Shop level=FINE
  agentctl health`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	connect.register(root)
	root.PersistentPreRun = func(c *cobra.Command, _ []string) {
		if warning := connect.warning(); warning != "" {
			fmt.Fprintln(c.ErrOrStderr(), "agentctl: warning:", warning)
		}
	}
	root.AddCommand(listCommand(&connect), watchCommand(&connect), commandsCommand(&connect), doCommand(&connect), healthCommand(&connect))
	return root
}

// filter selects agents.
type filter struct{ tracer, service, state string }

func (f *filter) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.tracer, "tracer", "", "only agents of this tracer, such as bytefrog")
	flags.StringVar(&f.service, "service", "", "only agents of this service")
	flags.StringVar(&f.state, "state", "", "only agents in this state, such as suspended")
}

func (f *filter) apply(all []api.Agent) []api.Agent {
	return slices.DeleteFunc(all, func(a api.Agent) bool {
		return f.tracer != "" && a.Tracer != f.tracer || f.service != "" && a.Service != f.service || f.state != "" && a.State != f.state
	})
}

// addOutput adds the flag for the format of the output.
func addOutput(c *cobra.Command, output *string) {
	c.Flags().StringVarP(output, "output", "o", outputTable, "table or json")
	c.PreRunE = func(*cobra.Command, []string) error {
		if *output != outputTable && *output != outputJSON {
			return fmt.Errorf("--output: expected table or json, got %q", *output)
		}
		return nil
	}
	// The only error is an unknown flag.
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{outputTable, outputJSON}, cobra.ShellCompDirectiveNoFileComp))
}

// fromEnvironment returns the value of a variable, or another if it is not set.
func fromEnvironment(name, otherwise string) string { return cmp.Or(os.Getenv(name), otherwise) }

// leastDigits is the least number of digits of an ID. An empty text, of an unset variable, must not name the only agent.
// A short text would soon match another agent.
const leastDigits = 4

// resolve returns the agent whose ID begins with some digits.
func resolve(all []api.Agent, digits string) (api.Agent, error) {
	if len(digits) < leastDigits {
		return api.Agent{}, fmt.Errorf("expected the ID of an agent, or at least its first %d digits, got %q", leastDigits, digits)
	}
	var found []api.Agent
	for _, a := range all {
		if a.ID == digits {
			return a, nil
		}
		if strings.HasPrefix(a.ID, digits) {
			found = append(found, a)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return api.Agent{}, fmt.Errorf("expected the ID of an agent, or its first digits, got %q, which none of %d agents has", digits, len(all))
	default:
		return api.Agent{}, fmt.Errorf("expected an ID that one agent has, got %q, with which %d begin", digits, len(found))
	}
}
