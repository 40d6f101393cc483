// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package profiling runs the profiler of one Arthas server in periods, and forwards the profile of each. It knows no pipeline.
//
// A program has one profiler, and everybody can start and stop it. Its state tells nothing but whether, and since when, it runs.
// So these are the rules:
//
//   - The receiver starts it only if it does not run. Otherwise somebody else uses it, and the receiver tries again after a period.
//   - At the end of a period it has to run for as long as the receiver knows. Otherwise somebody else has stopped it, and maybe
//     started it again: the receiver leaves it alone, and its period is lost.
//   - The profiler stops by itself some time after the end of a period, for the case that the receiver cannot stop it.
//   - After a lost connection, and in the next collector if there is a storage, a period goes on.
package profiling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/callbraid/callbraid/internal/arthas"
)

// Settings are the settings of a [Profiler].
type Settings struct {
	Client *arthas.Client
	Event  arthas.ProfilerEvent
	// Interval is the time between samples; 0 means the profiler's.
	Interval time.Duration
	// Period is the length of a profile, in whole seconds.
	Period time.Duration
	// MaxText limits the text of a profile, in bytes.
	MaxText int64
	// Storage may be nil. Key is the key in it.
	Storage storage.Client
	Key     string
	// Leaving ends when the time to stop the profiler at a shutdown is over.
	Leaving context.Context
	Output  Output
	Now     func() time.Time
}

// Output accepts what a profiler makes.
type Output interface {
	// Profile accepts a profile with its begin and end.
	Profile(profile *arthas.Profiler, begun, ended time.Time)
	// Period counts a period by its outcome.
	Period(outcome Outcome, why error)
}

// Outcome is the outcome of a period.
type Outcome uint8

// The outcomes of periods.
const (
	// Done means that the profile was forwarded. It may be empty.
	Done Outcome = iota
	// Foreign means that somebody else uses the profiler.
	Foreign
	// Lost means that the profiler ended before the period, or that its profile did not arrive.
	Lost
	// Refused means that the profiler did not start.
	Refused
)

// String returns the value of the attribute outcome.
func (o Outcome) String() string { return [...]string{"done", "foreign", "lost", "refused"}[o] }

// Profiler is the profiler of one server. One goroutine at a time owns it.
type Profiler struct {
	Settings
	process string
	// running is the period that the receiver has started, or nil.
	running *period
}

// period is a started period. The profiler began between two times.
type period struct {
	// Asked is the time when the start was sent, and Begun when its answer arrived.
	Asked time.Time `json:"asked"`
	Begun time.Time `json:"begun"`
}

// stored is the period in the storage.
type stored struct {
	Process string `json:"process"`
	Period  period `json:"period"`
}

// New returns a profiler.
func New(settings Settings) *Profiler { return &Profiler{Settings: settings} }

// Run runs periods until ctx ends, in a process with an identity. If serving has ended too, it stops the profiler first. The error is not nil if
// the server cannot be used.
func (p *Profiler) Run(serving, ctx context.Context, process string) error {
	if p.process != process {
		if p.running != nil {
			p.Output.Period(Lost, errRestarted)
		}
		p.process, p.running = process, nil
		if err := p.restore(ctx); err != nil {
			return err
		}
	}
	for {
		if p.running == nil {
			if err := p.start(ctx); err != nil {
				return err
			}
		}
		pause := p.Period
		if p.running != nil {
			pause -= p.Now().Sub(p.running.Begun)
		}
		ended := !sleep(ctx, pause)
		if ended && (serving.Err() == nil || p.running == nil) {
			return nil // the period goes on when the server answers again
		}
		if p.running == nil {
			continue
		}
		if err := p.stop(); err != nil || ended {
			return err
		}
	}
}

// sleep waits, and reports false if ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// spare is the time that the profiler runs longer than a period by itself, in periods and in addition to them.
const (
	sparePeriods = 2
	spare        = 30 * time.Second
)

// limit is the time after which the server interrupts a command.
const limit = 20 * time.Second

// start begins a period, if the profiler does not run.
func (p *Profiler) start(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	asked := p.Now()
	// The end of ctx does not cut the request off: then it would not be known whether the profiler runs.
	_, err := p.exec(p.Leaving, arthas.StartProfilerCommand{Event: p.Event, Interval: p.Interval, Timeout: (sparePeriods*p.Period + spare).Truncate(time.Second)})
	switch {
	case err == nil:
		p.store(&period{Asked: asked, Begun: p.Now()})
	case arthas.IsProfilerRunning(err):
		p.Output.Period(Foreign, err)
	case isRefusal(err):
		p.Output.Period(Refused, err)
	case isLost(err):
		return err
	default:
		p.Output.Period(Lost, err)
	}
	return nil
}

// isRefusal reports whether the server carried a command out, and it failed.
func isRefusal(err error) bool {
	var failed *arthas.CommandError
	return errors.As(err, &failed)
}

var (
	errRestarted = errors.New("the program was started again before the end of the period")
	errStopped   = errors.New("somebody else stopped the profiler before the end of the period")
	errTooOld    = errors.New("the server's async-profiler sends no stacks: it has to be 2.5 or newer, as in Arthas 3.5.6")
)

// stop ends the period and forwards its profile, if the profiler runs since its begin.
func (p *Profiler) stop() error {
	of := p.running
	sent := p.Now()
	state, err := p.exec(p.Leaving, arthas.ProfilerStatusCommand{})
	if err != nil {
		return p.failed(err)
	}
	if since, is := state.Running(); !is || !of.mayRun(since, sent, p.Now()) {
		p.store(nil)
		p.Output.Period(Lost, errStopped)
		return nil
	}
	profile, err := p.exec(p.Leaving, arthas.StopProfilerCommand{MaxText: p.MaxText})
	switch ended := p.Now(); {
	case err != nil:
		return p.failed(err)
	case profile.HasNoStacks():
		p.Output.Period(Refused, errTooOld)
	default:
		p.Output.Profile(profile, of.Begun, ended)
		p.Output.Period(Done, nil)
	}
	p.store(nil)
	return nil
}

// failed handles the error of a request at the end of a period. The period is over, unless the server is lost: then the
// profiler may still run.
func (p *Profiler) failed(err error) error {
	if isLost(err) {
		return err
	}
	p.store(nil)
	p.Output.Period(Lost, err)
	return nil
}

// isLost reports whether the server does not answer as Arthas.
func isLost(err error) bool {
	for _, lost := range []error{arthas.ErrNotListening, arthas.ErrClosed, arthas.ErrUnauthorized, arthas.ErrNotHTTP, arthas.ErrNotArthas, context.Canceled} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return false
}

// tolerance is how much the clocks of the receiver and of the profiler may differ over a period.
const tolerance = 2 * time.Second

// mayRun reports whether a profiler that has been running for whole seconds may be that of the period. It was asked between
// two times.
func (of *period) mayRun(since time.Duration, sent, received time.Time) bool {
	return since >= sent.Sub(of.Begun).Truncate(time.Second)-tolerance && since <= received.Sub(of.Asked)+tolerance
}

// exec carries out a command, and returns its result.
func (p *Profiler) exec(ctx context.Context, command arthas.Command) (*arthas.Profiler, error) {
	e, err := p.Client.Exec(ctx, command, limit)
	if err != nil {
		return nil, err
	}
	for _, result := range e.Results {
		if of, is := result.(*arthas.Profiler); is {
			return of, nil
		}
	}
	return nil, fmt.Errorf("the server sent no answer of the profiler within %v", limit)
}

// store notes the period that runs, or nil.
func (p *Profiler) store(of *period) {
	p.running = of
	if p.Storage == nil {
		return
	}
	ctx := context.WithoutCancel(p.Leaving)
	// Without the storage the profiler stops by itself.
	if of == nil {
		_ = p.Storage.Delete(ctx, p.Key)
		return
	}
	value, err := json.Marshal(stored{p.process, *of})
	if err == nil {
		_ = p.Storage.Set(ctx, p.Key, value)
	}
}

// restore reads the period of a collector that was killed.
func (p *Profiler) restore(ctx context.Context) error {
	if p.Storage == nil {
		return nil
	}
	value, err := p.Storage.Get(ctx, p.Key)
	if err != nil || value == nil {
		return err
	}
	var of stored
	if json.Unmarshal(value, &of) == nil && of.Process == p.process {
		p.running = &of.Period
	}
	return nil
}
