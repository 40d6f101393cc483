// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package progress shows how far a run of agents is: a bar on a terminal, plain lines
// elsewhere.
package progress

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/callbraid/callbraid/internal/componentkit/figures"
)

// How often a bar and lines are brought up to date.
const (
	barInterval  = 100 * time.Millisecond
	lineInterval = 2 * time.Second
	// intervalsPerStillLine: a number that does not change has one line in so many intervals.
	intervalsPerStillLine = 5
)

// Progress shows a growing number of items.
type Progress struct {
	out   *os.File
	label string
	unit  string
	total uint64
	bar   *progressbar.ProgressBar // nil where out is no terminal

	mu    sync.Mutex // output
	begin time.Time
	done  chan struct{}
	ended sync.WaitGroup
}

// New returns a progress that is not visible yet. unit is the plural noun of the items. total is 0
// if it is not known.
func New(out *os.File, label, unit string, total uint64) *Progress {
	p := &Progress{out: out, label: label, unit: unit, total: total, done: make(chan struct{})}
	if term.IsTerminal(int(out.Fd())) {
		p.bar = newBar(out, label, unit, total)
	}
	return p
}

func newBar(out *os.File, label, unit string, total uint64) *progressbar.ProgressBar {
	most := int64(total)
	if total == 0 {
		most = -1 // a spinner
	}
	return progressbar.NewOptions64(most,
		progressbar.OptionSetWriter(out),
		progressbar.OptionSetDescription(label),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString(unit),
		progressbar.OptionSetWidth(30),
		progressbar.OptionSetPredictTime(total > 0),
		progressbar.OptionClearOnFinish(),
	)
}

// Start shows the number that sample returns, until Stop.
func (p *Progress) Start(sample func() uint64) {
	p.begin = time.Now()
	interval := lineInterval
	if p.bar != nil {
		interval = barInterval
	}
	p.ended.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		last, still := uint64(0), intervalsPerStillLine-1 // the first interval has a line
		for {
			select {
			case <-p.done:
				return
			case <-ticker.C:
				now := sample()
				if still++; now != last || p.bar != nil || still == intervalsPerStillLine {
					p.show(now, float64(now-last)/interval.Seconds())
					still = 0
				}
				last = now
			}
		}
	})
}

func (p *Progress) show(n uint64, rate float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		p.bar.Set64(int64(n)) // fails only if the terminal is gone
		return
	}
	if p.total == 0 {
		fmt.Fprintf(p.out, "%s: %s %s, %s/s\n", p.label, figures.Count(n), p.unit, figures.Rate(rate))
		return
	}
	fmt.Fprintf(p.out, "%s: %s of %s %s (%d%%), %s/s\n", p.label, figures.Count(n), figures.Count(p.total), p.unit,
		n*100/p.total, figures.Rate(rate))
}

// Stop removes the bar and waits until no more output follows. It can be called twice, and without
// Start.
func (p *Progress) Stop() {
	p.mu.Lock()
	select {
	case <-p.done:
	default:
		close(p.done)
	}
	p.mu.Unlock()
	p.ended.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		p.bar.Clear() // fails only if the terminal is gone
	}
}

// Println prints a line without disturbing the bar.
func (p *Progress) Println(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		p.bar.Clear() // fails only if the terminal is gone
	}
	fmt.Fprintln(p.out, line)
}
