// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callbraid/callbraid/internal/agentcontrol/api"
)

func watchCommand(connect *connectFlags) *cobra.Command {
	var which filter
	var interval time.Duration
	command := &cobra.Command{
		Use:   "watch",
		Short: "Print a line for each change of the agents, until it is interrupted",
		Long: `Prints a line for each agent that connects, disconnects, or changes its state. The
first lines are the connected agents, or one line if no agent matches. It ends if the
collector refuses the request, or has no extension agent_control.

The standard program watch shows a table that is always up to date:

  watch agentctl list --service shop`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if interval < 100*time.Millisecond {
				return fmt.Errorf("--interval: expected at least 100ms, got %v", interval)
			}
			client, err := connect.client()
			if err != nil {
				return err
			}
			return watch(c.Context(), client, &which, interval, newChanges(c.OutOrStdout()))
		},
	}
	which.register(command)
	command.Flags().DurationVar(&interval, "interval", time.Second, "interval of the requests")
	return command
}

// watch requests the agents and prints their changes until the context ends. It returns an error if the collector
// refuses the request.
func watch(ctx context.Context, client *api.Client, which *filter, interval time.Duration, changes *changes) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		list, err := client.Agents(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if isFinal(err) {
			return err
		}
		if err != nil {
			changes.printFailure(err, time.Now())
		} else {
			all := len(list.Agents)
			changes.print(which.apply(list.Agents), all, time.Now())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// isFinal reports whether another request would get the same error.
func isFinal(err error) bool {
	status := 0
	if p := (*api.Problem)(nil); errors.As(err, &p) {
		status = p.Status
	} else if n := (*api.NoAnswer)(nil); errors.As(err, &n) {
		status = n.Status
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed:
		return true
	}
	return false
}

// changes prints the changes between two lists of agents.
type changes struct {
	out io.Writer
	// known has the agents of the last list, by ID; nil: there was no list yet.
	known map[string]api.Agent
	// failing: the last request failed.
	failing bool
}

func newChanges(out io.Writer) *changes { return &changes{out: out} }

// printFailure prints the error of the first failed request.
func (c *changes) printFailure(err error, at time.Time) {
	if !c.failing {
		c.printLine(at, "request failed:", printable(err.Error()))
	}
	c.failing = true
}

// print prints the changes since the last list. all is the number of agents before the filter.
func (c *changes) print(agents []api.Agent, all int, at time.Time) {
	if c.failing {
		c.printLine(at, "request", "succeeded again")
	}
	c.failing = false
	if c.known == nil && len(agents) == 0 {
		c.printLine(at, "waiting:", fmt.Sprintf("none of %d connected agents matches", all))
	}
	gone := c.known
	c.known = map[string]api.Agent{}
	for _, a := range agents {
		before, was := gone[a.ID]
		switch {
		case !was:
			c.printLine(at, "connected", describe(&a))
		case before.State != a.State:
			c.printLine(at, "changed", describe(&a))
		}
		delete(gone, a.ID)
		c.known[a.ID] = a
	}
	for _, a := range gone {
		c.printLine(at, "disconnected", describe(&a))
	}
}

func (c *changes) printLine(at time.Time, change, text string) {
	fmt.Fprintln(c.out, at.Format(time.RFC3339), change, text)
}

// describe returns the text of an agent in a line.
func describe(a *api.Agent) string {
	cells := row(a, time.Time{})
	return strings.Join(cells[:len(cells)-1], " ")
}
