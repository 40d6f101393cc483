// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callbraid/callbraid/cmd/agentsim/internal/progress"
	"github.com/callbraid/callbraid/internal/componentkit/figures"
	"github.com/callbraid/callbraid/internal/greys/gp"
	"github.com/callbraid/callbraid/internal/greys/sim/greysserver"
)

// greysFlags are the flags of the command that simulates a Greys server.
type greysFlags struct {
	options                 greysserver.Options
	listen, protocol, style string
	codes                   bool
	timezone                string
	faults                  []string
	restartEvery, duration  time.Duration
	truth                   string
	verbose                 bool
}

func greysCommand() *cobra.Command {
	var f greysFlags
	command := &cobra.Command{
		Use:   "greys",
		Short: "Play a Greys server",
		Long: `Plays a Greys server that is attached to a Java process: the text console as the
released server has it, and the binary protocol (GP) as its document describes it, on
one port or only one of them. The same seed gives the same calls of the process. It runs
until it is interrupted, or for --duration. Then it prints the calls that happened, and
the calls that clients received.`,
		Example: `  agentsim greys
  agentsim greys --protocol gp --codes --classes 50 --methods 10 --rate 1000
  agentsim greys --protocol console --fault cut,end-in-data --fault-every 20
  agentsim greys --restart-every 30s --truth truth.json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return f.play(c.Context(), c.OutOrStdout())
		},
	}
	f.register(command)
	return command
}

func (f *greysFlags) register(c *cobra.Command) {
	flags, o := c.Flags(), &f.options
	flags.SortFlags = false
	flags.StringVar(&f.listen, "listen", "localhost:3658", "address to listen on, host:port")
	flags.StringVar(&f.protocol, "protocol", string(greysserver.Both), "protocol: gp, console, or both, which the first byte of a client distinguishes")
	flags.IntVar(&o.Program.Classes, "classes", 10, "classes of the program")
	flags.IntVar(&o.Program.Methods, "methods", 10, "methods of each class")
	flags.Float64Var(&o.Program.Rate, "rate", 100, "calls in a second, which make up to 3 others each")
	flags.Int64Var(&o.Program.Calls, "calls", 0, "rest after this many calls (0: no end)")
	flags.Float64Var(&o.Program.Failures, "failures", 0.05, "part of the calls that throw")
	flags.IntVar(&o.Program.Threads, "threads", 4, "threads of the program")
	flags.Int64Var(&o.Program.RecordEvery, "record-every", 0, "record a call after this many others, as if another client had requested it (0: none)")
	flags.Uint64Var(&o.Program.Seed, "seed", 1, "seed of the program")
	flags.StringVar(&o.Version, "server-version", "1.7.6.6", "version of the server")
	flags.BoolVar(&f.codes, "codes", false, "know the requests of GP that have no code in the document, by the codes 0x07 to 0x0a")
	flags.StringVar(&f.style, "style", "documented", "data of GP: documented (numbers as texts), typed, or sloppy (commas and quotes as in the document's samples)")
	flags.StringVar(&f.timezone, "timezone", "Local", "time zone of the server's times: a name, UTC, or that of this machine (Local)")
	flags.Float64Var(&o.Speed, "speed", 1, "factor by which the cycles of monitors are faster than real time")
	flags.DurationVar(&o.ReplyDelay, "reply-delay", 0, "time before each reply")
	flags.DurationVar(&o.EndDelay, "end-delay", 200*time.Millisecond, "how long after a reply the console reports its end")
	flags.DurationVar(&o.SessionTimeout, "session-timeout", 5*time.Minute, "end connections that are silent for this time")
	flags.StringSliceVar(&f.faults, "fault", nil, "faults, by turns: "+faultNames())
	flags.IntVar(&o.FaultEvery, "fault-every", 10, "number of replies between two faults")
	flags.IntVar(&o.FaultTimes, "fault-times", 0, "number of faults (0: no end)")
	flags.DurationVar(&f.restartEvery, "restart-every", 0, "end the process and begin another one each time (0: never)")
	flags.BoolVar(&o.SameID, "same-pid", false, "begin it with the same process ID, as in a container")
	flags.DurationVar(&f.duration, "duration", 0, "end after this time (0: no end)")
	flags.StringVar(&f.truth, "truth", "", "file for the calls that happened, as JSON, written at the end")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print each command")
}

func faultNames() string {
	var names []string
	for _, fault := range greysserver.Faults() {
		names = append(names, string(fault))
	}
	return strings.Join(names, ", ")
}

// greysStyles are the styles of GP's data.
var greysStyles = map[string]gp.Style{"documented": gp.Documented, "typed": gp.Typed, "sloppy": gp.Sloppy}

// check checks the flags, and completes the options.
func (f *greysFlags) check() error {
	o := &f.options
	for _, flag := range []struct {
		name  string
		value int64
		least int64
	}{
		{"classes", int64(o.Program.Classes), 1}, {"methods", int64(o.Program.Methods), 1}, {"calls", o.Program.Calls, 0},
		{"threads", int64(o.Program.Threads), 1}, {"record-every", o.Program.RecordEvery, 0},
		{"fault-every", int64(o.FaultEvery), 1}, {"fault-times", int64(o.FaultTimes), 0},
	} {
		if flag.value < flag.least {
			return fmt.Errorf("--%s: expected at least %d, got %d", flag.name, flag.least, flag.value)
		}
	}
	for name, d := range map[string]time.Duration{
		"reply-delay": o.ReplyDelay, "end-delay": o.EndDelay, "session-timeout": o.SessionTimeout, "restart-every": f.restartEvery, "duration": f.duration,
	} {
		if d < 0 {
			return fmt.Errorf("--%s: expected at least 0, got %v", name, d)
		}
	}
	if !(o.Program.Rate > 0) || !(o.Speed > 0) {
		return fmt.Errorf("--rate, --speed: expected more than 0, got %v and %v", o.Program.Rate, o.Speed)
	}
	return errors.Join(f.name(), o.Check())
}

// name completes the options with the names in flags.
func (f *greysFlags) name() (err error) {
	o := &f.options
	o.Protocol = greysserver.Protocol(f.protocol)
	var known bool
	if o.Style, known = greysStyles[f.style]; !known {
		return fmt.Errorf("--style: expected documented, typed or sloppy, got %q", f.style)
	}
	if o.Location, err = time.LoadLocation(f.timezone); err != nil {
		return fmt.Errorf("--timezone: %w", err)
	}
	if f.codes {
		o.Codes = gp.UsualCodes()
	}
	o.Faults = nil
	for _, name := range f.faults {
		o.Faults = append(o.Faults, greysserver.Fault(name))
	}
	return nil
}

// play serves until it is interrupted, or for the time of --duration.
func (f *greysFlags) play(ctx context.Context, out io.Writer) error {
	ctx, stop := untilInterrupted(ctx, f.duration)
	defer stop()
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	bar := progress.New(os.Stderr, "greys", "calls", 0)
	if f.verbose {
		f.options.OnCommand = func(command string) { bar.Println("command: " + command) }
	}
	server, err := greysserver.New(f.options)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	fmt.Fprintf(out, "listening on %s, for %s\n", listener.Addr(), f.protocol)
	bar.Start(func() uint64 { return made(server.Lives()) })
	restarting := make(chan struct{})
	go func() {
		defer close(restarting)
		restartRegularly(ctx, f.restartEvery, server.Restart)
	}()
	err = server.Serve(ctx, listener)
	stop()
	<-restarting
	bar.Stop()
	return errors.Join(err, f.sumUp(out, server.Lives()))
}

// made returns the number of calls.
func made(lives []greysserver.Truth) (calls uint64) {
	for _, t := range lives {
		calls += uint64(t.Made.Sum().Calls)
	}
	return calls
}

// sumUp prints the result.
func (f *greysFlags) sumUp(out io.Writer, lives []greysserver.Truth) error {
	for _, t := range lives {
		made, told := t.Made.Sum(), t.Reported.Sum()
		fmt.Fprintf(out, "process %d: made %s calls, %s failed; sent %s by monitors, %s trees, %s stacks, %s records; %s missed; %s classes were reset, %s remained changed\n",
			t.ProcessID, count(made.Calls), count(made.Failed), count(told.Calls), count(t.Trees), count(t.Stacks), count(t.Records),
			count(t.Missed), count(t.Resets), count(t.Enhanced))
	}
	return writeTruth(f.truth, lives)
}

func count(n int64) string { return figures.Count(uint64(n)) }
