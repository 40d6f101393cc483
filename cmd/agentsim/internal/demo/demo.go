// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package demo shows the collector at work: it starts one, lets an agent run against it,
// reads the profile of all calls that the collector has counted, and sums it up.
package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/callbraid/callbraid/cmd/agentsim/internal/progress"
	"github.com/callbraid/callbraid/internal/componentkit/figures"
)

// dataVariable is the variable of the configuration for the directory of its output.
const dataVariable = "CALLBRAID_DATA"

// functionLabel is Prometheus' name of the attribute that only metrics of calls have.
const functionLabel = "code_function_name"

// Names in the data directory.
const (
	spansName   = "spans.json"
	logsName    = "logs.json"
	metricsName = "metrics.txt"
	logName     = "collector.log"
)

// Options are the settings of a demonstration.
type Options struct {
	Collector string // path of the collector's binary
	Config    string // path of its configuration
	Data      string // directory of the exported data
	Endpoint  string // where the configuration's receiver listens, host:port
	Health    string // URL of the configuration's health check
	Metrics   string // URL of the configuration's Prometheus exporter
	Pages     string // URL of the configuration's flame graphs

	// Agent runs the agent to its end.
	Agent func() error
	// Calls is the number of calls that the collector is to count.
	Calls uint64
	// Keep keeps the collector running until ctx ends, so that a user can look at its pages.
	Keep bool
	// Service is the name of the traced program.
	Service string
	// Screenshot is the file of the picture of the program's page; empty: no picture.
	Screenshot string

	Out    io.Writer // for the result
	Status *os.File  // for progress
}

func (o Options) logFile() string { return filepath.Join(o.Data, logName) }

// Bounds of the time that the demo waits for data. The collector sends both every few seconds.
const (
	// countPatience is the time without new calls after which the demo continues with those so far.
	countPatience = time.Minute
	// metricsPatience is the time in which the Prometheus exporter must show the metrics of calls.
	metricsPatience = time.Minute
	// countInterval is the time between two looks at the profile of all calls.
	countInterval = 500 * time.Millisecond
)

// Run runs the whole demonstration. The end of ctx shortens it. Run always ends the collector.
//
// A failed picture is an error, but everything else is done.
func Run(ctx context.Context, o Options) (err error) {
	if o.Data, err = filepath.Abs(o.Data); err != nil {
		return err
	}
	if err := os.MkdirAll(o.Data, 0o755); err != nil {
		return err
	}
	health, err := url.Parse(o.Health)
	if err != nil {
		return err
	}
	pages, err := url.Parse(o.Pages)
	if err != nil {
		return err
	}
	if err := checkFree(o.Endpoint, health.Host, pages.Host); err != nil {
		return err
	}
	fmt.Fprintf(o.Status, "starting %s with %s\n", o.Collector, o.Config)
	c, err := startCollector(ctx, o)
	if err != nil {
		return err
	}
	defer func() {
		if c != nil {
			err = errors.Join(err, c.stop())
		}
	}()
	if err := o.Agent(); err != nil {
		return err
	}
	s, err := await(ctx, c, o)
	if err != nil {
		return err
	}
	saved := saveMetrics(ctx, o)
	var noPicture error
	if o.Screenshot != "" {
		if noPicture = takePicture(ctx, o); noPicture != nil && o.Keep {
			fmt.Fprintln(o.Status, noPicture) // the end is far away
		}
	}
	if page, err := serviceAddress(ctx, o.Pages); err == nil { // without calls there is no service
		o.Pages = page
	}
	if o.Keep {
		if err := keepRunning(ctx, c, s, o); err != nil {
			return errors.Join(err, noPicture)
		}
	}
	err = c.stop() // it writes its last spans
	c = nil
	if err != nil {
		return errors.Join(err, noPicture)
	}
	if o.Keep {
		return noPicture
	}
	return errors.Join(conclude(s, o, saved), noPicture)
}

// await reads the profile of all calls until the collector has counted all, or counts no more.
func await(ctx context.Context, c *collector, o Options) (*summary, error) {
	bar := progress.New(o.Status, "counted", "calls", o.Calls)
	var seen atomic.Uint64
	bar.Start(seen.Load)
	defer bar.Stop()
	s, still := &summary{}, time.Now()
	for s.calls < o.Calls && time.Since(still) < countPatience {
		// There is no profile before the first interval.
		if now, err := fetchSummary(ctx, o.Pages); err == nil && now.calls > s.calls {
			s, still = now, time.Now()
			seen.Store(s.calls)
			continue
		}
		select {
		case <-c.ended:
			return nil, c.failure("the collector ended by itself")
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(countInterval):
		}
	}
	return s, nil
}

// saveMetrics saves the page of the Prometheus exporter when it has the metrics of calls. It reports
// whether they arrived.
func saveMetrics(ctx context.Context, o Options) bool {
	ctx, cancel := context.WithTimeout(ctx, metricsPatience)
	defer cancel()
	for {
		page, err := fetch(ctx, o.Metrics)
		if err == nil && bytes.Contains(page, []byte(functionLabel)) {
			return os.WriteFile(filepath.Join(o.Data, metricsName), page, 0o644) == nil
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pollInterval):
		}
	}
}

// keepRunning prints the result and waits for the end of ctx.
func keepRunning(ctx context.Context, c *collector, s *summary, o Options) error {
	if err := conclude(s, o, false); err != nil {
		return err
	}
	fmt.Fprintln(o.Status, "the collector runs until it is interrupted (ctrl-C)")
	select {
	case <-c.ended:
		return c.failure("the collector ended by itself")
	case <-ctx.Done():
		return nil
	}
}

// conclude prints the result. saved reports whether the metrics are in a file.
func conclude(s *summary, o Options, saved bool) error {
	fmt.Fprintln(o.Out)
	if err := s.print(o.Out); err != nil {
		return err
	}
	name := filepath.Join(o.Data, spansName)
	size := ""
	if info, err := os.Stat(name); err == nil {
		size = ", " + figures.Bytes(uint64(info.Size()))
	}
	metrics := o.Metrics
	switch {
	case saved:
		metrics = fmt.Sprintf("%s (as %s shows them while the collector runs)", filepath.Join(o.Data, metricsName), o.Metrics)
	case !o.Keep:
		metrics += " while the collector runs"
	}
	pages := o.Pages
	if !o.Keep {
		pages += " while the collector runs (DEMO_KEEP=true lets it run)"
	}
	fmt.Fprintf(o.Out, "\nWhere to look:\n\n  the page     %s\n  spans        %s (traces that the configuration keeps, OTLP JSON%s)\n  metrics      %s\n  logs         %s\n  its own log  %s\n",
		pages, name, size, metrics, filepath.Join(o.Data, logsName), o.logFile())
	if s.calls != o.Calls {
		return fmt.Errorf("expected %s calls, got %s: see %s", figures.Count(o.Calls), figures.Count(s.calls), o.logFile())
	}
	return nil
}
