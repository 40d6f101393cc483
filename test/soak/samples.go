// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"time"
)

// sample has the resources that the collector uses at one time.
type sample struct {
	at         time.Duration
	memory     uint64 // peak of the last while, in bytes
	goroutines int
	files      int
}

// samplesOfRun is the number of samples of a run.
const samplesOfRun = 20

// sample measures the collector in regular intervals, and prints the progress.
func (s *soak) sample(ctx context.Context, length time.Duration) {
	began := time.Now()
	tick := time.NewTicker(length / samplesOfRun)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			now := sample{time.Since(began), s.collector.PeakMemory(s.t), s.collector.Goroutines(s.t), s.collector.OpenFiles(s.t)}
			s.samples = append(s.samples, now)
			s.collector.ResetPeakMemory(s.t)
			fmt.Printf("%v of %v: %v events received, %d spans delivered, %d MiB, %d goroutines, %d files\n",
				now.at.Round(time.Second), length, int64(s.collector.Look(s.t).Sum(bytefrogEvents)), s.total(), now.memory>>20, now.goroutines, now.files)
		}
	}
}

// grown lists the resources that grow: in the last quarter of the run the collector uses half as
// much again as in the second, when it was warm, and the difference is larger than usual variation.
func grown(samples []sample) (all []string) {
	quarter := len(samples) / 4
	if quarter == 0 {
		return nil
	}
	for _, of := range []struct {
		what   string
		varies float64
		value  func(sample) float64
	}{
		{"bytes of memory", 64 << 20, func(s sample) float64 { return float64(s.memory) }},
		{"goroutines", 20, func(s sample) float64 { return float64(s.goroutines) }},
		{"open files", 20, func(s sample) float64 { return float64(s.files) }},
	} {
		early, late := mean(samples[quarter:2*quarter], of.value), mean(samples[len(samples)-quarter:], of.value)
		if late > 1.5*early && late-early > of.varies {
			all = append(all, fmt.Sprintf("%s: from %.0f to %.0f", of.what, early, late))
		}
	}
	return all
}

func mean(samples []sample, value func(sample) float64) (mean float64) {
	for _, s := range samples {
		mean += value(s) / float64(len(samples))
	}
	return mean
}
