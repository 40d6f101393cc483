// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/callbraid/callbraid/internal/agentcontrol/api"
)

func commandsCommand(connect *connectFlags) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:               "commands ID",
		Short:             "Show what an agent can be told",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: connect.completeAgent,
		RunE: func(c *cobra.Command, args []string) error {
			_, agent, err := connect.agent(c, args[0])
			if err != nil {
				return err
			}
			if output == outputJSON {
				return printJSON(c.OutOrStdout(), agent.Descriptions)
			}
			return printCommands(c.OutOrStdout(), agent.Descriptions)
		},
	}
	addOutput(command, &output)
	return command
}

func doCommand(connect *connectFlags) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "do ID COMMAND [NAME=VALUE]...",
		Short: "Have an agent do something, and wait until it has answered",
		Example: `  agentctl do 3f2a suspend
  agentctl do 77b0 enable logger=com.example.Shop level=FINE`,
		Args:              cobra.MinimumNArgs(2),
		ValidArgsFunction: connect.completeOrder,
		RunE: func(c *cobra.Command, args []string) error {
			order, err := parseOrder(args[1:])
			if err != nil {
				return err
			}
			client, agent, err := connect.agent(c, args[0])
			if err != nil {
				return err
			}
			answer, err := client.Order(c.Context(), agent.ID, order)
			if err != nil {
				return err
			}
			if output == outputJSON {
				return printJSON(c.OutOrStdout(), answer)
			}
			return printAnswer(c.OutOrStdout(), &answer)
		},
	}
	addOutput(command, &output)
	return command
}

// parseOrder is what words mean: a command, and name=value.
func parseOrder(words []string) (api.Order, error) {
	order := api.Order{Command: words[0], Arguments: map[string]any{}}
	for _, word := range words[1:] {
		name, value, ok := strings.Cut(word, "=")
		if !ok || name == "" {
			return order, fmt.Errorf("expected name=value, got %q", word)
		}
		if _, twice := order.Arguments[name]; twice {
			return order, fmt.Errorf("expected %s once, got it twice", name)
		}
		order.Arguments[name] = value
	}
	return order, nil
}

// agent finds an agent by how its ID begins.
func (f *connectFlags) agent(c *cobra.Command, digits string) (*api.Client, api.AgentDetail, error) {
	client, err := f.client()
	if err != nil {
		return nil, api.AgentDetail{}, err
	}
	list, err := client.Agents(c.Context())
	if err != nil {
		return nil, api.AgentDetail{}, err
	}
	found, err := resolve(list.Agents, digits)
	if err != nil {
		return nil, api.AgentDetail{}, err
	}
	agent, err := client.Agent(c.Context(), found.ID)
	return client, agent, err
}

func printCommands(out io.Writer, commands []api.Command) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range commands {
		mark := ""
		if c.Disruptive {
			mark = " (needs allow_disruptive)"
		}
		fmt.Fprintf(table, "%s\t%s%s\n", printable(c.Name), printable(c.Summary), mark)
		for _, p := range c.Parameters {
			name := p.Name + "=" + p.Kind
			if len(p.OneOf) > 0 {
				name = p.Name + "=" + strings.Join(p.OneOf, "|")
			}
			if !p.Required {
				name = "[" + name + "]"
			}
			fmt.Fprintf(table, "  %s\t%s\n", printable(name), printable(p.Summary))
		}
	}
	return table.Flush()
}

func printAnswer(out io.Writer, a *api.Answer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, printable(a.Message))
	for _, d := range a.Details {
		fmt.Fprintf(table, "  %s\t%s\n", printable(d.Name), printable(d.Value))
	}
	for _, item := range a.Items {
		fmt.Fprintln(table, printable(item))
	}
	if a.MoreItems > 0 {
		fmt.Fprintf(table, "and %d more\n", a.MoreItems)
	}
	return table.Flush()
}

func printJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// completeAgent completes the ID of an agent.
func (f *connectFlags) completeAgent(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	client, err := f.client()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, err := client.Agents(c.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var all []cobra.Completion
	for i := range list.Agents {
		if a := &list.Agents[i]; strings.HasPrefix(a.ID, begun) {
			all = append(all, cobra.CompletionWithDesc(a.ID, printable(a.Tracer+" "+a.Service+" "+a.Address)))
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// completeOrder completes an agent, a command, or the name of an argument.
func (f *connectFlags) completeOrder(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return f.completeAgent(c, args, begun)
	}
	_, agent, err := f.agent(c, args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var all []cobra.Completion
	for _, command := range agent.Descriptions {
		if len(args) == 1 {
			all = append(all, cobra.CompletionWithDesc(command.Name, command.Summary))
			continue
		}
		for _, p := range command.Parameters {
			if command.Name == args[1] {
				all = append(all, cobra.CompletionWithDesc(p.Name+"=", p.Summary))
			}
		}
	}
	directive := cobra.ShellCompDirectiveNoFileComp
	if len(args) > 1 {
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	return all, directive
}
