// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"context"
	"errors"
	"time"

	"github.com/callbraid/callbraid/internal/greys/console"
	"github.com/callbraid/callbraid/internal/javamethods"
)

// consoleRun is a running command.
type consoleRun struct {
	*consoleConn
	// aborted ends when the client aborts the command, or with the connection.
	aborted context.Context
}

// run runs the command of a line until it ends.
func (r *consoleRun) run(line string) {
	command, silence, err := console.ParseLine(line)
	if err != nil {
		if words := err.Error(); words != "" {
			r.send([]byte(words + "\n"))
		}
		return
	}
	loud := r.setLoud(silence)
	switch err := r.runCommand(command, loud); {
	case errors.Is(err, errFailed):
		r.send([]byte("Command execution failed.\n"))
	case err != nil:
		r.send([]byte("Command execution failed. cause : " + err.Error() + "\n"))
	}
}

// setLoud applies the silence of a line to the session and returns the mode before it.
func (r *consoleRun) setLoud(silence console.Silence) (before bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before = r.loud
	if silence != console.Unchanged {
		r.loud = silence == console.Loud
	}
	return before
}

func (r *consoleRun) runCommand(command javamethods.Command, loud bool) error {
	switch command := command.(type) {
	case javamethods.MonitorCommand:
		return r.monitor(command, loud)
	case javamethods.TraceCommand:
		return r.events(command.Target, newEvents(command.Limit), loud, r.tree)
	case javamethods.StackCommand:
		return r.events(command.Target, newEvents(command.Limit), loud, r.stack)
	case javamethods.RecordCommand:
		w := newEvents(command.Limit)
		w.records = true
		return r.events(command.Target, w, loud, r.record)
	default:
		data, err := r.answer(command, loud)
		if err != nil {
			return err
		}
		if len(data) > 0 {
			r.send(data)
		}
		return nil
	}
}

// answer returns the answer to a command that ends by itself.
func (r *consoleRun) answer(command javamethods.Command, loud bool) (data []byte, err error) {
	switch command := command.(type) {
	case javamethods.VersionCommand:
		return console.AppendVersion(nil, &javamethods.Version{Text: r.options.Version}), nil
	case javamethods.SessionsCommand:
		return console.AppendSession(nil, r.session(), !loud), nil
	case javamethods.ResetCommand:
		r.life.reset(func(string) bool { return true })
		return nil, nil
	case javamethods.ClassesCommand:
		classes, err := r.life.classes(command)
		for i := range classes {
			data = console.AppendClass(data, &classes[i])
		}
		return data, err
	case javamethods.MethodsCommand:
		methods, err := r.life.methods(command)
		return console.AppendMethods(nil, methods), err
	case javamethods.RecordsCommand:
		var records []javamethods.Record
		for _, of := range r.life.recorded(-1) {
			records = append(records, r.row(of.Record))
		}
		return console.AppendRecords(nil, records), nil
	case javamethods.RecordDetailCommand:
		detail, err := r.life.detail(command.Index)
		if err != nil {
			return console.AppendNoRecord(nil, command.Index), nil
		}
		detail.Time = detail.Time.In(r.options.Location)
		return console.AppendRecordDetail(nil, detail), nil
	}
	return nil, nil
}

// session returns this session.
func (r *consoleRun) session() *javamethods.Sessions {
	sessions := r.sessionsOf(r.life)
	for _, s := range sessions.Sessions {
		if s.ID == r.id {
			s.From, s.To = "/"+s.From, "/"+s.To
			sessions.Sessions = []javamethods.Session{s}
			break
		}
	}
	return sessions
}

// row returns a recorded call in the form of tables: with the simple name of the class.
func (r *consoleRun) row(of javamethods.Record) javamethods.Record {
	of.Time = of.Time.In(r.options.Location)
	of.Class, of.IsSimple = of.Class[len(packageName)+1:], true
	return of
}

// affected reports how much a target's patterns matched, in a session that is not silent.
func (r *consoleRun) affected(w *watch, loud bool) {
	if loud {
		r.send(console.AppendAffected(nil, &w.affected, 20*time.Millisecond))
	}
}

// monitor sends an empty table immediately, and one for each cycle until it is aborted.
func (r *consoleRun) monitor(command javamethods.MonitorCommand, loud bool) error {
	w := &watch{cycle: newCycle()}
	w.oneBegin = true
	if err := r.life.fails(command.Target); err != nil {
		return err
	}
	if err := r.life.watch(command.Target, w); err != nil {
		return err
	}
	defer r.life.unwatch(w)
	r.affected(w, loud)
	ticker := time.NewTicker(r.options.cycle(command.Cycle))
	defer ticker.Stop()
	var table []byte
	for cycle := (cycleOf{}); ; {
		table = console.AppendStatistics(table[:0], &cycle.Statistics)
		switch r.send(table) {
		case ended:
			return nil
		case sent:
			if !r.halved.Load() {
				r.life.countCycle(cycle)
			}
		}
		select {
		case <-r.aborted.Done():
			return nil
		case at := <-ticker.C:
			cycle = r.life.takeCycle(w, at.In(r.options.Location))
		}
	}
}

// events reports calls until the limit, or until it is aborted.
func (r *consoleRun) events(target javamethods.Target, w *watch, loud bool, report func(e event, first bool) outcome) error {
	w.oneBegin = true
	if err := r.life.fails(target); err != nil {
		return err
	}
	if err := r.life.watch(target, w); err != nil {
		return err
	}
	defer r.life.unwatch(w)
	r.affected(w, loud)
	for first := true; ; first = false {
		select {
		case <-r.aborted.Done():
			return nil
		case e, more := <-w.events:
			if !more || report(e, first) == ended {
				return nil
			}
		}
	}
}

func (r *consoleRun) tree(e event, _ bool) outcome {
	result := r.send(console.AppendTree(nil, r.life.treeOf(e)))
	if result == sent {
		r.life.update(func(t *Truth) { t.Trees++ })
	}
	return result
}

func (r *consoleRun) stack(e event, _ bool) outcome {
	result := r.send(console.AppendCallStack(nil, r.life.stackOf(e)))
	if result == sent {
		r.life.update(func(t *Truth) { t.Stacks++ })
	}
	return result
}

func (r *consoleRun) record(e event, first bool) outcome {
	row := r.row(e.record)
	result := r.send(console.AppendRecord(nil, &row, first, e.last))
	if result == sent {
		r.life.update(func(t *Truth) { t.Records++ })
	}
	return result
}
