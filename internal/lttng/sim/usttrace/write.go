// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package usttrace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Options say which trace is written.
type Options struct {
	// Events is how many there are at least: beyond it threads leave the functions that
	// they are in. At least 1.
	Events int
	// Contexts has the contexts vtid, vpid and procname recorded with every event.
	// Without them calls can't be told apart by thread.
	Contexts bool
	// Seed makes another trace of the same kind.
	Seed uint64
}

// Counts are what a trace has.
type Counts struct {
	Events int
	// Calls are function calls, all of which end.
	Calls int
	// Work are the events that are neither function calls nor the state of a process.
	Work int
}

// Write writes a trace into a folder that exists.
func Write(dir string, o Options) (Counts, error) {
	if o.Events < 1 {
		return Counts{}, fmt.Errorf("expected at least 1 event, got %d", o.Events)
	}
	if err := os.WriteFile(filepath.Join(dir, "metadata"), metadataPackets(metadataText(o.Contexts)), 0o600); err != nil {
		return Counts{}, err
	}
	w := &writer{program: newProgram(o)}
	err := w.open(dir)
	if err == nil {
		err = w.write(o.Events)
	}
	return w.counts, errors.Join(err, w.close())
}

// writer writes what a program does to streams.
type writer struct {
	program *program
	streams [channels][cpus]*stream
	counts  Counts
}

func (w *writer) open(dir string) (err error) {
	for channel := range w.streams {
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

// write writes so many events, and then those that end what is open.
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

// step writes what a thread does next.
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
