// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/callbraid/callbraid/internal/agentcontrol/api"
)

func commandsCommand(connect *connectFlags) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:               "commands ID",
		Short:             "Show the commands of an agent",
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
		Short: "Send an agent a command, and wait for its answer",
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
				return uncertain(err)
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

// uncertain adds to an error that the collector may have sent the command, unless that is impossible.
func uncertain(err error) error {
	var dial *net.OpError
	if errors.As(err, new(*api.Problem)) || errors.As(err, new(*api.NoAnswer)) || errors.As(err, &dial) && dial.Op == "dial" {
		return err
	}
	return fmt.Errorf("there is no answer; the command may have been sent, check the agent's state: %w", err)
}

// parseOrder parses the words of an order: a command, and name=value.
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

// agent returns the agent whose ID begins with some digits.
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
			mark := ""
			if p.DisruptiveIf != "" {
				mark = " (needs allow_disruptive if " + printable(p.DisruptiveIf) + ")"
			}
			fmt.Fprintf(table, "  %s\t%s%s\n", printable(name), printable(p.Summary), mark)
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
