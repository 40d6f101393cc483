// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/callbraid/callbraid/internal/agentcontrol/api"
)

func listCommand(connect *connectFlags) *cobra.Command {
	var output string
	var which filter
	command := &cobra.Command{
		Use:   "list",
		Short: "List the agents",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := connect.client()
			if err != nil {
				return err
			}
			list, err := client.Agents(c.Context())
			if err != nil {
				return err
			}
			list.Agents = which.apply(list.Agents)
			if output == outputJSON {
				return printJSON(c.OutOrStdout(), list.Agents)
			}
			return printAgents(c.OutOrStdout(), list.Agents, time.Now())
		},
	}
	addOutput(command, &output)
	which.register(command)
	return command
}

// printAgents prints a table.
func printAgents(out io.Writer, agents []api.Agent, now time.Time) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tTRACER\tSERVICE\tADDRESS\tPROCESS\tSTATE\tLAST SEEN")
	for i := range agents {
		fmt.Fprintln(table, strings.Join(row(&agents[i], now), "\t"))
	}
	return table.Flush()
}

// row returns the cells of an agent in a table.
func row(a *api.Agent, now time.Time) []string {
	process := ""
	if a.Process != nil && a.Process.PID > 0 {
		process = fmt.Sprint(a.Process.PID)
	}
	if a.Process != nil && a.Process.Name != "" {
		process = strings.TrimSpace(process + " " + a.Process.Name)
	}
	seen := ""
	if a.LastSeen != nil {
		seen = max(0, now.Sub(*a.LastSeen)).Round(time.Second).String() + " ago"
	}
	cells := []string{a.ID, a.Tracer, a.Service, a.Address, process, a.State, seen}
	for i := range cells {
		if cells[i] = clip(cells[i], longestCell); cells[i] == "" {
			cells[i] = "-"
		}
	}
	return cells
}

// Longest printed texts, in characters: of a cell in a table, and of any text.
const (
	longestCell = 60
	longestText = 2000
)

// printable returns a text without control characters of terminals, cut to longestText.
func printable(text string) string { return clip(text, longestText) }

// clip returns the first characters of a text, without control characters of terminals.
func clip(text string, most int) string {
	shown := []rune(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text))
	if len(shown) > most {
		shown = append(shown[:most], '…')
	}
	return string(shown)
}
