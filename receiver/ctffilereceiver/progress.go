// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

import (
	"time"

	"go.uber.org/zap"
)

// progressInterval is the interval of log lines about the progress.
const progressInterval = 10 * time.Second

// summary counts since the start.
type summary struct {
	began                 time.Time
	read, failed, damaged int
	// late is the number of files that appeared after later packets had been read.
	late            int
	events, packets int64
	// unfound is set if the search ended early, or could not read a directory.
	unfound bool
}

// progress returns the bytes of packets in files, and those that were read.
func (r *reader) progress() (found, read int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.traces {
		found += t.Size()
		read += t.Read()
	}
	return found, read
}

// logProgress logs how far reading is.
func (r *reader) logProgress(reading bool) {
	if !reading {
		return
	}
	found, read := r.progress()
	if found == 0 || read == found {
		return
	}
	events := int64(0)
	for _, s := range r.states() {
		events += s.Events
	}
	r.mu.Lock()
	sum, traces := r.sum, len(r.traces)
	r.mu.Unlock()
	share := float64(read) / float64(found)
	fields := []zap.Field{
		zap.Float64("share", share), zap.Int64("events", sum.events+events), zap.Int("traces_read", sum.read), zap.Int("traces", traces),
	}
	if elapsed := r.env.Now().Sub(sum.began); share > 0 {
		fields = append(fields, zap.Duration("time_left", time.Duration(float64(elapsed)*(1-share)/share).Round(time.Second)))
	}
	r.env.Logger.Info("Reading traces", fields...)
}

// logSummary logs the result, after all traces were read.
func (r *reader) logSummary() {
	r.mu.Lock()
	sum := r.sum
	r.mu.Unlock()
	if sum.read+sum.failed == 0 {
		r.logNoTrace()
		return
	}
	log, line := r.env.Logger.Info, "All traces are read"
	if sum.failed > 0 || sum.unfound {
		log, line = r.env.Logger.Warn, "The end is reached, but not all traces were read: earlier lines have the reasons"
	}
	log(line, zap.Int("traces", sum.read), zap.Int("failed", sum.failed), zap.Bool("search_complete", !sum.unfound), zap.Int("damaged_packets", sum.damaged), zap.Int("late_files", sum.late),
		zap.Int64("packets", sum.packets), zap.Int64("events", sum.events), zap.Duration("time", r.env.Now().Sub(sum.began)))
}

func (r *reader) logNoTrace() {
	r.env.Logger.Warn("There is no CTF trace to read: no directory that matches include has a file named metadata", zap.Strings("include", r.config.Include))
}
