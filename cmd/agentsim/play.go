// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/callbraid/callbraid/cmd/agentsim/internal/progress"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/componentkit/figures"
)

// player runs agents and shows their progress and results.
type player struct {
	out     io.Writer // for results
	status  *os.File  // for progress
	label   string
	total   uint64 // events of all agents; 0 if it is not known
	verbose bool
}

// play runs an agent for each program. The first interrupt ends the programs in order,
// the second kills them. The error is an exitCode if not all ran to their end.
func (p player) play(o bytefrogagent.Options, programs []bytefrogagent.Program) ([]bytefrogagent.Result, error) {
	agents := make([]*bytefrogagent.Agent, len(programs))
	bar := progress.New(p.status, p.label, "events", p.total)
	for i, program := range programs {
		options := o
		if p.verbose {
			options.Log = func(format string, args ...any) {
				bar.Println(name(i, len(programs)) + fmt.Sprintf(format, args...))
			}
		}
		agents[i] = bytefrogagent.New(options, program)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stopSignals := onInterrupt(func() {
		bar.Println("interrupted: the program ends in order; a second interrupt kills it")
		for _, a := range agents {
			a.Stop()
		}
	}, cancel)
	defer stopSignals()

	bar.Start(func() uint64 {
		var events uint64
		for _, a := range agents {
			events += a.Stats().Events
		}
		return events
	})
	begin := time.Now()
	results := make([]bytefrogagent.Result, len(agents))
	var running sync.WaitGroup
	for i, a := range agents {
		running.Go(func() { results[i] = a.Run(ctx) })
	}
	running.Wait()
	bar.Stop()
	took := time.Since(begin)

	worst := 0
	for i, result := range results {
		report(p.out, name(i, len(results)), result, took)
		worst = max(worst, codeOf(result))
	}
	if worst > 0 {
		return results, exitCode(worst)
	}
	return results, nil
}

// name returns the prefix of the lines of one of several agents.
func name(i, of int) string {
	if of == 1 {
		return ""
	}
	return fmt.Sprintf("agent %d: ", i+1)
}

// report prints how a run ended.
func report(w io.Writer, name string, r bytefrogagent.Result, took time.Duration) {
	switch r.Outcome {
	case bytefrogagent.Hung:
		fmt.Fprintf(w, "%sthe traced program hangs: %s\n", name, r.Reason)
	case bytefrogagent.Died:
		fmt.Fprintf(w, "%sthe traced program was ended before its main: %s\n", name, r.Reason)
	case bytefrogagent.Completed:
		fmt.Fprintf(w, "%s%s\n", name, r.Reason)
	case bytefrogagent.Killed:
		fmt.Fprintf(w, "%s%s\n", name, r.Reason)
	default:
		fmt.Fprintf(w, "%sthe program ran untraced to its end: %s\n", name, r.Reason)
	}
	if r.Err != nil {
		fmt.Fprintf(w, "%serror: %v\n", name, r.Err)
	}
	s := r.Stats
	if s.Buffers == 0 {
		return
	}
	fmt.Fprintf(w, "%ssent %s events, %s in %s buffers, %s events/s; waited %v for the receiver; %d heartbeats, %d data breaks\n",
		name, figures.Count(s.Events), figures.Bytes(s.Bytes), figures.Count(s.Buffers),
		figures.Rate(float64(s.Events)/took.Seconds()), s.Waited.Round(time.Millisecond), s.Heartbeats, s.Breaks)
}

func codeOf(r bytefrogagent.Result) int {
	switch r.Outcome {
	case bytefrogagent.Hung:
		return exitHung
	case bytefrogagent.Refused:
		return exitRefused
	case bytefrogagent.Died:
		return exitDied
	case bytefrogagent.Killed:
		return exitKilled
	default:
		return 0
	}
}

// onInterrupt calls first and second for the first and second interrupt until the
// returned function is called.
func onInterrupt(first, second func()) (stop func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for _, f := range []func(){first, second} {
			select {
			case <-signals:
				f()
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}
