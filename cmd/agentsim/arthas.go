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
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/callbraid/callbraid/cmd/agentsim/internal/progress"
	"github.com/callbraid/callbraid/internal/arthas/sim/arthasserver"
)

// arthasFlags are the flags of the command that simulates an Arthas server.
type arthasFlags struct {
	settings               arthasserver.Settings
	load                   arthasserver.Load
	listen, timezone       string
	faults                 []string
	restartEvery, duration time.Duration
	truth                  string
	verbose                bool
}

func arthasCommand() *cobra.Command {
	var f arthasFlags
	command := &cobra.Command{
		Use:   "arthas",
		Short: "Play an Arthas server",
		Long: `Plays an Arthas server that is attached to a Java process, with the HTTP API of the
real one. It also has the traps of the real one: queues that drop results silently,
commands that end after 100 results, polls that block the server, and resets that
leave classes instrumented. The same seed gives the same calls of the process. It runs
until it is interrupted, or for --duration. Then it prints the calls that happened, and
the results that clients received.`,
		Example: `  agentsim arthas
  agentsim arthas --classes 50 --methods 10 --rate 1000
  agentsim arthas --user arthas --password secret --password-locally
  agentsim arthas --fault close,cut,evict --fault-every 20
  agentsim arthas --restart-every 30s --truth truth.json`,
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

func (f *arthasFlags) register(c *cobra.Command) {
	flags, s, l := c.Flags(), &f.settings, &f.load
	flags.SortFlags = false
	flags.StringVar(&f.listen, "listen", "localhost:8563", "address to listen on, host:port")
	flags.StringVar(&l.Package, "package", "com.example.shop", "package of the program's classes")
	flags.IntVar(&l.Classes, "classes", 10, "classes of the program")
	flags.IntVar(&l.Methods, "methods", 10, "methods of each class")
	flags.Float64Var(&l.Rate, "rate", 100, "calls in a second, each with the calls that it makes")
	flags.Int64Var(&l.Calls, "calls", 0, "rest after this many calls (0: no end)")
	flags.Float64Var(&l.Failures, "failures", 0.05, "part of the calls that throw")
	flags.IntVar(&l.Threads, "threads", 4, "threads of the program")
	flags.Uint64Var(&l.Seed, "seed", 1, "seed of the program")
	flags.IntVar(&s.InFlight, "in-flight", 0, "calls that are under way when a command begins: their time is that since the host booted")
	flags.StringVar(&s.Version, "server-version", "4.3.4", "version of the server; before 4, times of calls are instants")
	flags.StringVar(&f.timezone, "timezone", "Local", "time zone of the server's times: a name, UTC, or that of this machine (Local)")
	flags.StringVar(&s.Username, "user", "", "user of Basic authentication (empty: none)")
	flags.StringVar(&s.Password, "password", "", "its password")
	flags.BoolVar(&s.LocalToo, "password-locally", false, "want the password from clients on this machine too")
	flags.IntVar(&s.Loops, "loops", 0, "event loops, which polls block (0: two for each processor)")
	flags.DurationVar(&s.PullWait, "pull-wait", 2*time.Second, "how long a poll without results waits")
	flags.DurationVar(&s.Patience, "patience", time.Second, "how long a full queue may be without a poll, before its command is interrupted")
	flags.StringSliceVar(&f.faults, "fault", nil, "faults, by turns: "+strings.Join(arthasserver.Names(), ", "))
	flags.IntVar(&s.FaultEvery, "fault-every", 10, "number of answers between two faults")
	flags.IntVar(&s.FaultTimes, "fault-times", 0, "number of faults (0: no end)")
	flags.DurationVar(&f.restartEvery, "restart-every", 0, "end the process and begin another one each time (0: never)")
	flags.BoolVar(&s.SameID, "same-pid", false, "begin it with the same process ID, as in a container")
	flags.DurationVar(&f.duration, "duration", 0, "end after this time (0: no end)")
	flags.StringVar(&f.truth, "truth", "", "file for the calls that happened, as JSON, written at the end")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print each command")
}

// check checks the flags, and completes the settings.
func (f *arthasFlags) check() error {
	s, l := &f.settings, &f.load
	for _, flag := range []struct {
		name  string
		value int64
		least int64
	}{
		{"classes", int64(l.Classes), 1}, {"methods", int64(l.Methods), 1}, {"calls", l.Calls, 0}, {"threads", int64(l.Threads), 1},
		{"in-flight", int64(s.InFlight), 0}, {"loops", int64(s.Loops), 0}, {"fault-every", int64(s.FaultEvery), 1}, {"fault-times", int64(s.FaultTimes), 0},
	} {
		if flag.value < flag.least {
			return fmt.Errorf("--%s: expected at least %d, got %d", flag.name, flag.least, flag.value)
		}
	}
	for name, d := range map[string]time.Duration{
		"pull-wait": s.PullWait, "patience": s.Patience, "restart-every": f.restartEvery, "duration": f.duration,
	} {
		if d < 0 {
			return fmt.Errorf("--%s: expected at least 0, got %v", name, d)
		}
	}
	if !(l.Rate > 0) {
		return fmt.Errorf("--rate: expected more than 0, got %v", l.Rate)
	}
	if !(l.Failures >= 0 && l.Failures <= 1) {
		return fmt.Errorf("--failures: expected a fraction from 0 to 1, got %v", l.Failures)
	}
	if (s.Username == "") != (s.Password == "") {
		return errors.New("--user, --password: expected both or none")
	}
	return f.complete()
}

// complete completes the settings with the values of other flags.
func (f *arthasFlags) complete() (err error) {
	s := &f.settings
	if s.Zone, err = time.LoadLocation(f.timezone); err != nil {
		return fmt.Errorf("--timezone: %w", err)
	}
	s.Faults = nil
	for _, name := range f.faults {
		fault, err := arthasserver.ParseFault(name)
		if err != nil {
			return fmt.Errorf("--fault: %w", err)
		}
		s.Faults = append(s.Faults, fault)
	}
	s.ProcessID, s.Classes = os.Getpid(), f.load.ClassMethods()
	s.Instants = strings.HasPrefix(s.Version, "3.")
	return nil
}

// play serves until it is interrupted, or for the time of --duration.
func (f *arthasFlags) play(ctx context.Context, out io.Writer) error {
	ctx, stop := untilInterrupted(ctx, f.duration)
	defer stop()
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	bar := progress.New(os.Stderr, "arthas", "calls", 0)
	if f.verbose {
		f.settings.OnCommand = func(command string) { bar.Println("command: " + command) }
	}
	server := arthasserver.New(f.settings)
	fmt.Fprintf(out, "listening on %s\n", listener.Addr())
	bar.Start(func() uint64 { return madeOf(server.Lives()) })
	playing, end := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { server.Play(playing, f.load) })
	all.Go(func() { restartRegularly(playing, f.restartEvery, server.Restart) })
	err = server.Serve(ctx, listener)
	end()
	all.Wait()
	bar.Stop()
	return errors.Join(err, f.sumUp(out, server.Lives()))
}

// madeOf returns the number of calls.
func madeOf(lives []arthasserver.Truth) (calls uint64) {
	for _, t := range lives {
		calls += uint64(t.Made.Sum().Calls)
	}
	return calls
}

// sumUp prints the result.
func (f *arthasFlags) sumUp(out io.Writer, lives []arthasserver.Truth) error {
	for _, t := range lives {
		made, told := t.Made.Sum(), t.Reported.Sum()
		fmt.Fprintf(out, "process %d: made %s calls, %s failed; sent %s by monitors, %s trees, %s stacks, %s watches, %s records; queues dropped %s results; %s classes were reset, %s remained changed; %s sessions remained open\n",
			t.ProcessID, count(made.Calls), count(made.Failed), count(told.Calls), count(t.Trees), count(t.Stacks), count(t.Watches), count(t.Records),
			count(t.Dropped), count(t.Resets), count(t.Enhanced), count(t.Sessions))
	}
	return writeTruth(f.truth, lives)
}
