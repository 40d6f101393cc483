// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/callbraid/callbraid/cmd/agentsim/internal/progress"
	"github.com/callbraid/callbraid/internal/componentkit/figures"
	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/internal/lttng/sim/logagent"
)

// lttngAgentFlags are the flags of the command that simulates LTTng's log agents.
type lttngAgentFlags struct {
	options  logagent.Options
	domain   string
	protocol string
	agents   int
	loggers  int
	names    string
	pid      uint32
	fault    string
	times    int
	duration time.Duration
	verbose  bool
}

// unusedPID is above all process IDs of Linux.
const unusedPID = 1<<22 + 1

func lttngAgentCommand() *cobra.Command {
	var f lttngAgentFlags
	command := &cobra.Command{
		Use:   "lttng-agent",
		Short: "Play LTTng's log agents in Java or Python programs",
		Long: `Plays the agents by which LTTng lists and switches the loggers of programs in Java
and Python: they connect, register, obey commands with the answers of real agents,
and connect again when they have lost the collector. Requests that end a real agent
end them too.

It goes on until --duration is over or it is interrupted; the programs then end.`,
		Example: `  agentsim lttng-agent --domain jul --loggers 20
  agentsim lttng-agent --port-file ~/.lttng/agent.port -v
  agentsim lttng-agent --domain python --agents 1000 --loggers 500
  agentsim lttng-agent --fault stall:2 --fault-times 0 --retry 100ms`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.Context(), c.OutOrStdout()) },
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.options.Address, "endpoint", "localhost:5345", "address of the receiver, host:port")
	flags.StringVar(&f.options.PortFile, "port-file", "", "file that the receiver writes its port into, in place of --endpoint")
	flags.StringVar(&f.domain, "domain", lttngagent.JUL.String(), "jul, log4j, log4j2 or python")
	flags.StringVar(&f.protocol, "protocol", lttngagent.V2.String(), "version of the protocol: 2.0, or rfc for 0.1")
	flags.IntVar(&f.agents, "agents", 1, "how many programs, each with an agent of its own")
	flags.IntVar(&f.loggers, "loggers", 10, "loggers of each program")
	flags.StringVar(&f.names, "names", "", "file with the names of each program's loggers, one in a line, in place of --loggers")
	flags.Uint32Var(&f.pid, "pid", unusedPID, "process ID of the first program; each further one has the next (default: an unused one)")
	flags.DurationVar(&f.options.Retry, "retry", logagent.DefaultRetry, "how long to wait before an agent connects again")
	flags.DurationVar(&f.options.HandlerTimeout, "handler-timeout", 0, "how long a program's first handler waits for the registration (0: as real ones)")
	flags.DurationVar(&f.options.ReplyDelay, "reply-delay", 0, "how long an agent thinks before each reply")
	flags.StringVar(&f.fault, "fault", "", "fault, KIND or KIND:N after N replies: "+strings.Join(logagent.FaultNames(), ", "))
	flags.IntVar(&f.times, "fault-times", 1, "on how many connections of each agent it goes wrong (0: on all)")
	flags.DurationVar(&f.duration, "duration", 0, "end after this time (0: no end)")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print the commands to the agents")
	return command
}

// complete checks the flags, and completes the options by them.
func (f *lttngAgentFlags) complete() (err error) {
	o := &f.options
	if o.Domain, err = lttngagent.ParseDomain(f.domain); err != nil {
		return fmt.Errorf("--domain: %w", err)
	}
	if o.Dialect, err = lttngagent.ParseDialect(f.protocol); err != nil {
		return fmt.Errorf("--protocol: %w", err)
	}
	if o.Dialect == lttngagent.RFC && o.Domain != lttngagent.JUL {
		return fmt.Errorf("--protocol rfc: expected --domain jul, got %s", o.Domain)
	}
	if f.agents < 1 {
		return fmt.Errorf("--agents: expected at least 1, got %d", f.agents)
	}
	if f.loggers < 0 {
		return fmt.Errorf("--loggers: expected at least 0, got %d", f.loggers)
	}
	if o.Retry <= 0 {
		return fmt.Errorf("--retry: expected more than 0, got %v", o.Retry)
	}
	o.Loggers = logagent.Names(f.loggers)
	if f.names != "" {
		if o.Loggers, err = readNames(f.names); err != nil {
			return fmt.Errorf("--names: %w", err)
		}
	}
	if o.Fault, err = parseAgentFault(f.fault); err != nil {
		return fmt.Errorf("--fault: %w", err)
	}
	if o.Fault.Times = f.times; f.times < 0 {
		return fmt.Errorf("--fault-times: expected at least 0, got %d", f.times)
	}
	return nil
}

// readNames reads a file of names.
func readNames(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		names = append(names, strings.TrimRight(line, "\r\n"))
	}
	return names, nil
}

// parseAgentFault returns a fault of a kind and, behind a colon, a number of replies.
func parseAgentFault(text string) (fault logagent.Fault, err error) {
	if text == "" {
		return fault, nil
	}
	name, number, hasNumber := strings.Cut(text, ":")
	if fault.Kind, err = logagent.ParseFaultKind(name); err != nil {
		return fault, err
	}
	if !hasNumber {
		return fault, nil
	}
	fault.After, err = strconv.Atoi(number)
	if err != nil || fault.After < 0 {
		return fault, fmt.Errorf("expected a number of replies behind %s:, got %q", name, number)
	}
	return fault, nil
}

// run plays the agents until ctx ends or until a condition of the flags.
func (f *lttngAgentFlags) run(ctx context.Context, out io.Writer) error {
	if err := f.complete(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if f.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.duration)
		defer cancel()
	}
	bar := progress.New(os.Stderr, "lttng-agent", "commands", 0)
	if f.verbose {
		f.options.Log = func(format string, args ...any) { bar.Println(fmt.Sprintf(format, args...)) }
	}
	agents := make(fleet, f.agents)
	for i := range agents {
		o := f.options
		o.PID = f.pid + uint32(i)
		agents[i] = logagent.New(o)
	}
	fmt.Fprintf(out, "playing %s agents of %s with %s loggers each\n",
		figures.Count(uint64(f.agents)), f.options.Domain, figures.Count(uint64(len(f.options.Loggers))))
	begin := time.Now()
	bar.Start(func() uint64 { return uint64(agents.stats().Answered()) })
	err := agents.run(ctx)
	bar.Stop()
	agents.report(out, time.Since(begin))
	return err
}

// fleet has the simulated agents.
type fleet []*logagent.Agent

// run plays them until ctx ends.
func (f fleet) run(ctx context.Context) error {
	var running sync.WaitGroup
	errs := make([]error, len(f))
	for i, a := range f {
		running.Go(func() { errs[i] = a.Run(ctx) })
	}
	running.Wait()
	return errors.Join(errs...)
}

func (f fleet) stats() logagent.Stats {
	var all logagent.Stats
	for _, a := range f {
		all.Add(a.Stats())
	}
	return all
}

// report prints the result.
func (f fleet) report(w io.Writer, took time.Duration) {
	s := f.stats()
	fmt.Fprintf(w, "%s connections, %s commands answered in %v", figures.Count(uint64(s.Connections)),
		figures.Count(uint64(s.Answered())), took.Round(time.Millisecond))
	separator := ": "
	for _, c := range slices.Sorted(maps.Keys(s.Commands)) {
		fmt.Fprintf(w, "%s%s %s", separator, figures.Count(uint64(s.Commands[c])), c)
		separator = ", "
	}
	fmt.Fprintf(w, "; %s names listed\n", figures.Count(uint64(s.Listed)))
	fmt.Fprintf(w, "%d programs made their first handler, the slowest in %v, %d of them timed out\n",
		s.Handlers, s.HandlerWait.Round(time.Millisecond), s.HandlerTimeouts)
	fmt.Fprintf(w, "%d requests ended an agent or its connection; %d faults\n", s.Unanswered, s.Faults)
	enabled, patterns := 0, map[string]int{}
	for _, a := range f {
		for pattern, n := range a.Enabled() {
			patterns[pattern] += n
			enabled += n
		}
	}
	fmt.Fprintf(w, "enabled at the end: %d", enabled)
	separator = ": "
	for _, pattern := range slices.Sorted(maps.Keys(patterns)) {
		fmt.Fprintf(w, "%s%q (%d)", separator, pattern, patterns[pattern])
		separator = ", "
	}
	fmt.Fprintln(w)
}
