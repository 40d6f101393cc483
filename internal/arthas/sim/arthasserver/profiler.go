// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasserver

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// profiler is the profiler of the program. It samples each call: its own time has the stack of the call. It keeps the
// stacks of the last start, also after its end.
type profiler struct {
	// started is the time of the last start; zero means never. until is when it stops by itself, and running is false
	// after a stop.
	started, until time.Time
	running        bool
	stacks         map[string]time.Duration
}

// isRunning reports whether the profiler runs. A timeout has stopped it.
func (p *profiler) isRunning(now time.Time) bool {
	if p.running && !p.until.IsZero() && !now.Before(p.until) {
		p.running = false
	}
	return p.running
}

// sample adds the own time of a call and of its callees.
func (p *profiler) sample(c Call, callers string) {
	frames := callers + strings.ReplaceAll(c.Class, ".", "/") + "." + c.Method + "_[j]"
	p.stacks[frames] += c.ownCost()
	for _, child := range c.Children {
		p.sample(child, frames+";")
	}
}

// profile answers the command profiler.
func (j *job) profile(srv *Server) {
	const failed = 1
	p, now := &srv.program.profiler, srv.settings.now()
	action, arguments := "", ""
	if len(j.line.Arguments) > 0 {
		action = j.line.Arguments[0]
	}
	if len(j.line.Arguments) > 1 {
		arguments = j.line.Arguments[1]
	}
	words := strings.Split(arguments, ",")
	answer := result{"type": "profiler", "action": action}
	switch {
	case action == "status":
		answer["executeResult"] = "Profiler is not active\n"
		if p.isRunning(now) {
			answer["executeResult"] = fmt.Sprintf("Profiling is running for %d seconds\n", int(now.Sub(p.started)/time.Second))
		}
	case action != "execute":
		j.end(srv, failed, "AsyncProfiler error: the simulated server has no "+action)
		return
	case words[0] == "start" && p.isRunning(now):
		j.end(srv, failed, "AsyncProfiler error: Profiler already started")
		return
	case words[0] == "start" && !slices.ContainsFunc([]string{"cpu", "wall", "alloc", "lock"}, func(event string) bool {
		return slices.Contains(words, "event="+event)
	}):
		j.end(srv, failed, "AsyncProfiler error: Unsupported event type")
		return
	case words[0] == "start":
		*p = profiler{started: now, running: true, stacks: map[string]time.Duration{}}
		for _, word := range words {
			if seconds, is := strings.CutPrefix(word, "timeout="); is {
				n, _ := strconv.Atoi(seconds) // clients send numbers
				p.until = now.Add(time.Duration(n) * srv.settings.Second)
			}
		}
		srv.program.truth.Profiles++
		answer["actionArg"], answer["executeResult"] = arguments, "Profiling started\n"
	case words[0] == "stop" && p.started.IsZero():
		j.end(srv, failed, "AsyncProfiler error: Profiler has not started")
		return
	case words[0] == "stop":
		if p.isRunning(now) {
			srv.program.truth.ProfilesStopped++
			for _, d := range p.stacks {
				srv.program.truth.Profiled += d
			}
		}
		p.running = false
		answer["actionArg"], answer["executeResult"] = arguments, p.text()
	default: // the real profiler ignores unknown words
		answer["actionArg"], answer["executeResult"] = arguments, "\n"
	}
	j.send(srv, answer)
	j.end(srv, 0, "")
}

// text returns the stacks of the last start, as the profiler writes them.
func (p *profiler) text() string {
	text := strings.Builder{}
	for _, frames := range slices.Sorted(maps.Keys(p.stacks)) {
		if d := p.stacks[frames]; d > 0 {
			fmt.Fprintf(&text, "%s %d\n", frames, d.Nanoseconds())
		}
	}
	if text.Len() == 0 {
		return "\n"
	}
	return text.String()
}

// StartProfiler starts the profiler as another client would, if it does not run.
func (srv *Server) StartProfiler() {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if p := &srv.program.profiler; !p.isRunning(srv.settings.now()) {
		*p = profiler{started: srv.settings.now(), running: true, stacks: map[string]time.Duration{}}
	}
}

// StopProfiler stops the profiler as another client would.
func (srv *Server) StopProfiler() {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.program.profiler.running = false
}

// IsProfiling reports whether the profiler runs.
func (srv *Server) IsProfiling() bool {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return srv.program.profiler.isRunning(srv.settings.now())
}
