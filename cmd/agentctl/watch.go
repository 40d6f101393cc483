// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/callbraid/callbraid/internal/agentcontrol/api"
)

func watchCommand(connect *connectFlags) *cobra.Command {
	var which filter
	var interval time.Duration
	command := &cobra.Command{
		Use:   "watch",
		Short: "Show the agents and their changes, until it is interrupted",
		Long: `Shows a table that is kept up to date. Where the output is no terminal, a line is
printed for each agent that comes, goes, or changes its state. It ends where the
collector says that it may not look, or that nothing is there.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if interval < 100*time.Millisecond {
				return fmt.Errorf("--interval: expected at least 100ms, got %v", interval)
			}
			client, err := connect.client()
			if err != nil {
				return err
			}
			var show shower = &lines{out: c.OutOrStdout(), known: map[string]api.Agent{}}
			if f, ok := c.OutOrStdout().(*os.File); ok && term.IsTerminal(int(f.Fd())) {
				show = &screen{out: f, size: func() (int, int, error) { return term.GetSize(int(f.Fd())) }}
			}
			return watch(c.Context(), client, &which, interval, show)
		},
	}
	which.add(command)
	command.Flags().DurationVar(&interval, "interval", time.Second, "interval of the requests")
	return command
}

// shower shows how agents are at a time, or that they can't be asked for.
type shower interface {
	show(agents []api.Agent, err error, at time.Time)
}

// watch shows the agents until the context ends.
func watch(ctx context.Context, client *api.Client, which *filter, interval time.Duration, to shower) error {
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
		to.show(which.apply(list.Agents), err, time.Now())
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// isFinal says of an error that it will be the same if the collector is asked again.
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

// screen shows a table on a terminal.
type screen struct {
	out  io.Writer
	size func() (width, height int, err error)
}

// Orders to a terminal: to its upper left corner, and to clear what is right and below.
const (
	toCorner   = "\x1b[H"
	clearLine  = "\x1b[K"
	clearBelow = "\x1b[J"
)

func (s *screen) show(agents []api.Agent, err error, at time.Time) {
	width, height, sizeErr := s.size()
	if sizeErr != nil || width <= 0 || height <= 0 { // serial lines don't know theirs
		width, height = 80, 24
	}
	var table bytes.Buffer
	if err != nil {
		fmt.Fprintln(&table, "Trying again:", printable(err.Error()))
	} else {
		// A buffer takes everything.
		_ = printAgents(&table, agents, at)
	}
	rows := strings.Split(strings.TrimSuffix(table.String(), "\n"), "\n")
	title := fmt.Sprintf("%d agents at %s", len(agents), at.Format(time.TimeOnly))
	if most := max(1, height-2); len(rows) > most {
		title += fmt.Sprintf(" (%d don't fit)", len(rows)-most)
		rows = rows[:most]
	}
	var b strings.Builder
	b.WriteString(toCorner)
	for _, line := range append([]string{title}, rows...) {
		characters := []rune(line)
		b.WriteString(string(characters[:min(len(characters), width)]) + clearLine + "\r\n")
	}
	b.WriteString(clearBelow)
	// Who looks at it sees if it fails.
	_, _ = io.WriteString(s.out, b.String())
}

// lines prints what changes.
type lines struct {
	out   io.Writer
	known map[string]api.Agent
	// failing says that the agents could not be asked for.
	failing bool
}

func (l *lines) show(agents []api.Agent, err error, at time.Time) {
	if err != nil {
		if !l.failing {
			l.say(at, "cannot be asked", printable(err.Error()))
		}
		l.failing = true
		return
	}
	if l.failing {
		l.say(at, "can be asked", "again")
	}
	l.failing = false
	gone := l.known
	l.known = map[string]api.Agent{}
	for _, a := range agents {
		before, was := gone[a.ID]
		switch {
		case !was:
			l.say(at, "came", describe(&a))
		case before.State != a.State:
			l.say(at, "changed", describe(&a))
		}
		delete(gone, a.ID)
		l.known[a.ID] = a
	}
	for _, a := range gone {
		l.say(at, "went", describe(&a))
	}
}

func (l *lines) say(at time.Time, what, which string) {
	fmt.Fprintln(l.out, at.Format(time.RFC3339), what, which)
}

// describe is an agent in a line.
func describe(a *api.Agent) string {
	cells := row(a, time.Time{})
	return strings.Join(cells[:len(cells)-1], " ")
}
