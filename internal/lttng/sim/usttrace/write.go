// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package usttrace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Options configure a trace.
type Options struct {
	// Events is the minimum number of events, at least 1. After it, threads leave their functions.
	Events int
	// Contexts adds the contexts vtid, vpid and procname to every event. Without them, calls cannot be assigned to
	// threads.
	Contexts bool
	// Seed selects another trace of the same kind.
	Seed uint64
}

// Counts are the numbers of events in a trace.
type Counts struct {
	Events int
	// Calls is the number of function calls. All of them end.
	Calls int
	// Work is the number of events that are neither function calls nor the state of a process.
	Work int
}

// Write writes a trace into an existing directory.
func Write(dir string, o Options) (Counts, error) {
	if o.Events < 1 {
		return Counts{}, errFewEvents(o.Events)
	}
	if err := writeMetadata(dir, metadataText(o.Contexts)); err != nil {
		return Counts{}, err
	}
	w := &writer{program: newProgram(o)}
	err := w.open(dir, channels)
	if err == nil {
		err = w.write(o.Events)
	}
	return w.counts, errors.Join(err, w.close())
}

func errFewEvents(events int) error { return fmt.Errorf("expected at least 1 event, got %d", events) }

func writeMetadata(dir, text string) error {
	return os.WriteFile(filepath.Join(dir, "metadata"), MetadataPackets(text), 0o600)
}

// writer writes the events of a program or of a kernel to streams.
type writer struct {
	program *program
	streams [channels][cpus]*stream
	counts  Counts
}

// open opens the streams of the first channels.
func (w *writer) open(dir string, channels int) (err error) {
	for channel := range channels {
		for cpu := range w.streams[channel] {
			if w.streams[channel][cpu], err = newStream(dir, channel, cpu); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) close() (all error) {
	for channel := range w.streams {
		for _, s := range w.streams[channel] {
			if s != nil {
				all = errors.Join(all, s.close())
			}
		}
	}
	return all
}

// write writes this number of events, and then those that end all open calls.
func (w *writer) write(events int) error {
	if err := w.begin(); err != nil {
		return err
	}
	p := w.program
	for w.counts.Events < events {
		cpu, at := p.next()
		if p.random.IntN(switchEvery) == 0 {
			p.relieve(cpu)
		}
		if err := w.step(cpu, at, p.running[cpu]); err != nil {
			return err
		}
	}
	for _, t := range p.threads {
		for len(t.stack) > 0 {
			cpu, at := p.next()
			if err := w.call(cpu, at, t, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin writes the state of each process.
func (w *writer) begin() error {
	p := w.program
	for i := 0; i < len(p.threads); i += threadsOfProcess {
		ids, contents := p.state(p.threads[i])
		for j, id := range ids {
			cpu, at := p.next()
			if err := w.event(channelCalls, cpu, at, id, contents[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

// step writes the next event of a thread.
func (w *writer) step(cpu int, at uint64, t *thread) error {
	if w.program.random.IntN(workEvery) > 0 {
		return w.call(cpu, at, t, false)
	}
	w.counts.Work++
	id, content := w.program.work(t)
	return w.event(channelWork, cpu, at, id, content)
}

func (w *writer) call(cpu int, at uint64, t *thread, ending bool) error {
	id, content := w.program.call(t, ending)
	if id == funcExit {
		w.counts.Calls++
	}
	return w.event(channelCalls, cpu, at, id, content)
}

func (w *writer) event(channel, cpu int, at uint64, id uint32, content []byte) error {
	w.counts.Events++
	return w.streams[channel][cpu].event(at, id, content)
}
