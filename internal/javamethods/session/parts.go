// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/process"
	"github.com/callbraid/callbraid/internal/javamethods/task"
)

// The released server keeps one begin for each thread and command. If a method that a command matches calls another
// matched method, the inner call's begin replaces the outer call's begin: times are too short, and call trees belong to
// other calls. So by default (per_method) the receiver divides a pattern of the console into parts:
//
//   1. The server lists the matching classes and methods.
//   2. The receiver omits constructors, static initialisers, lambdas, generated classes, interfaces and
//      methods without code: the server fails on them, or has no calls to report. A pattern without
//      wildcards is sent unchanged.
//   3. Each method has its own command, up to limits.max_pattern_commands.
//   4. Methods of further classes share commands. Their times and call trees are omitted.
//   5. A command that matches more than one method (overloads, subclasses that override it) has no
//      times and call trees either.
//   6. A part that the server refuses is omitted permanently. A reset removes the instrumentation that
//      it has left, and all other parts are sent again.
//   7. Only a lost part is sent again. The other parts continue, and so do their sums.

// isInParts reports whether a run is divided into parts.
func (r *run) isInParts() bool {
	return r.work.PerMethod && r.link.MixesCalls && r.job.Kind.Instruments()
}

// partsRun is a run that is divided into parts.
type partsRun struct {
	*run
	// lost receives lost parts, for the goroutine of the session.
	lost chan<- *lostPart

	// listed means that the parts are listed methods. Otherwise the only part is the whole pattern.
	listed bool
	// The lock guards the fields below: the error of the first part that ended unexpectedly, the number of parts that
	// may still report calls, and the number of parts that are not instrumented.
	ending          sync.Mutex
	first           error
	active, without int
}

// lostPart is a lost part that waits until its command may be sent again.
type lostPart struct {
	run  *run
	part *part
	err  error
	// due is the time when it may be sent again.
	due time.Time
	// again receives whether it is sent again in this run. It has a buffer of one.
	again chan bool
}

// makeParts makes the parts of the pattern, and stores their counts.
func (r *partsRun) makeParts() ([]*part, error) {
	t, limit := r.job.Task, r.job.rest()
	if isExact(t.Target) {
		return []*part{{target: t.Target, limit: limit, name: t.Pattern, timed: true}}, nil
	}
	list, methods, err := r.listMethods()
	if err != nil {
		return nil, err
	}
	r.listed = true
	most := r.work.MaxPatternCommands
	all := list.partition(t.Kind, limit, most)
	logLimit := func(message string, fields ...zap.Field) {
		r.work.Logger.Warn(message, append(append(t.LogFields(), fields...), zap.Int("limits.max_pattern_commands", most))...)
	}
	if len(all.without) > 0 {
		r.work.Counters.MethodsLeftOut(list.count(all.without), LeftOutNoRoom)
		logLimit("A pattern needs more commands than the limit allows: its other classes are not watched", zap.Int("classes_not_watched", len(all.without)))
	}
	if all.shared > 0 {
		logLimit("A pattern matches more methods than the limit of commands: some share a command, and have no times and call trees",
			zap.Int("methods", methods), zap.Int("methods_without_times", all.shared))
	}
	parts := slices.DeleteFunc(all.parts, func(p *part) bool { return r.job.refusedParts[p.name] })
	r.work.mu.Lock()
	defer r.work.mu.Unlock()
	if len(parts) == 0 {
		r.affect(0, 0)
		return nil, nil
	}
	r.parts = parts
	r.affect(int64(len(list.classes)), int64(methods))
	if r.isStarting() {
		r.reportBegun()
	}
	return parts, nil
}

// listMethods requests the methods of the pattern that the server can instrument.
func (r *partsRun) listMethods() (methodList, int, error) {
	target, found := r.job.Target, newListing()
	err := r.link.Run(r.ctx, javamethods.ClassesCommand{Class: target.Class, Regexp: target.Regexp}, func(reply javamethods.Reply) {
		if c, is := reply.(*javamethods.Class); is {
			found.class(c)
		}
	})
	if err != nil {
		return methodList{}, 0, err
	}
	err = r.link.Run(r.ctx, javamethods.MethodsCommand{Target: target}, func(reply javamethods.Reply) {
		if m, is := reply.(*javamethods.Method); is {
			found.method(m)
		}
	})
	list, methods := found.inOrder()
	return list, methods, err
}

// askAll runs all parts until they have ended, and returns the error of the first one that ended unexpectedly. It calls
// begun when all have been sent once.
func (r *partsRun) askAll(parts []*part, begun func()) error {
	var running sync.WaitGroup
	r.active = len(parts)
	for _, p := range parts {
		leave, ok := r.work.gate.enter(r.ctx)
		if !ok {
			break
		}
		running.Go(func() { r.enterEnd(p, len(parts), r.askUntilEnd(p, leave)) })
	}
	begun()
	running.Wait()
	if r.first == nil {
		return r.ctx.Err()
	}
	return r.first
}

// errNoCode means that the server lists a method, but has not instrumented it.
var errNoCode = errors.New("the server lists the method, and has put no code into it")

// isAlone reports whether the error of a part does not concern the other parts.
func isAlone(err error) bool { return !isReply(err) && !errors.Is(err, errPoisoned) }

// askUntilEnd runs a part until its limit ends it or the server refuses it. It sends the command again after a loss. A
// part that is the whole pattern ends with its run.
func (r *partsRun) askUntilEnd(p *part, leave func()) error {
	for {
		err := r.askPart(p, leave)
		ended := err == nil && r.job.Limit > 0
		if ended || !r.listed || errors.Is(err, errNoCode) || err != nil && !isAlone(err) {
			return err
		}
		if !r.awaitAgain(p, orEarly(err)) {
			return err
		}
		if r.job.Limit > 0 {
			r.work.mu.Lock()
			p.limit = max(1, r.job.Limit-javamethods.Limit(r.total()))
			r.work.mu.Unlock()
		}
		again, ok := r.work.gate.enter(r.ctx)
		if !ok {
			return err
		}
		leave = again
	}
}

// askPart sends the command of a part and waits for its end. If its limit ends it, the error is nil. After a refusal no
// more commands are sent: it would be unknown which of two the server refuses.
func (r *partsRun) askPart(p *part, leave func()) error {
	defer leave()
	p.asked = r.work.Now()
	if r.work.resets.poisoned.Load() {
		return errPoisoned
	}
	ctx, end := context.WithCancel(r.ctx)
	defer end()
	noCode := false
	err := r.link.Run(ctx, r.job.CommandFor(p.target, p.limit), func(reply javamethods.Reply) {
		if of, is := reply.(*javamethods.Affected); is && r.listed && of.Methods == 0 {
			noCode = true
			end()
		}
		leave() // the server replies when it has instrumented the classes
		r.receivePart(p, reply)
	})
	if errors.Is(err, javamethods.ErrRefused) {
		r.work.resets.poisoned.Store(true)
		if !r.work.gate.oneByOne.Swap(true) {
			return errPoisoned // all are sent again, one at a time
		}
	}
	if noCode && r.ctx.Err() == nil {
		return errNoCode
	}
	return err
}

// enterEnd records the end of one of the parts.
func (r *partsRun) enterEnd(p *part, parts int, err error) {
	r.ending.Lock()
	defer r.ending.Unlock()
	limited := r.job.Limit > 0
	if r.ctx.Err() == nil {
		switch {
		case errors.Is(err, errNoCode):
			r.active--
			r.without++
			r.reportNoCode(p, r.without == parts)
		case err == nil && limited:
			r.active-- // its limit is reached
		}
	}
	if err == nil && limited || errors.Is(err, errNoCode) {
		if limited && r.active == 0 && r.without < parts {
			r.end(errEnough)
		}
		return
	}
	if r.first != nil || r.ctx.Err() != nil {
		return
	}
	err = orEarly(err)
	r.first = fmt.Errorf("%s: %w", p.name, err)
	switch {
	case r.listed && isAlone(err):
	case r.listed && errors.Is(err, javamethods.ErrRefused):
		r.refusePart(p, err)
		r.end(errPoisoned)
	case errors.Is(err, errPoisoned):
		r.end(errPoisoned)
	default:
		r.end(errPart)
	}
}

// reportNoCode reports a part that the server has not instrumented. all means that it instrumented no part.
func (r *partsRun) reportNoCode(p *part, all bool) {
	w, t := r.work, r.job.Task
	w.Counters.MethodsLeftOut(1, LeftOutNoCode)
	if _, due := r.job.withoutCode.Count(w.Now()); due {
		w.Logger.Warn("The server lists a method, but does not instrument it: its library can't read classes of newer Java, such as nested ones that are compiled for Java 11. The program's standard output has the reason",
			append(t.LogFields(), zap.String("method", p.name))...)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if m, known := w.process.Matched(t); known {
		w.process.Match(t, process.Matched{Classes: m.Classes, Methods: m.Methods - 1})
	}
	if all {
		r.matched = false
		r.affect(0, 0)
	}
}

// refusePart removes a part that the server has refused, permanently.
func (r *partsRun) refusePart(p *part, why error) {
	w := r.work
	w.mu.Lock()
	if r.job.refusedParts == nil {
		r.job.refusedParts = map[string]bool{}
	}
	r.job.refusedParts[p.name], p.timed = true, false
	w.mu.Unlock()
	w.Counters.MethodsLeftOut(1, LeftOutRefused)
	w.Logger.Warn("The server could not put its code into a method: the receiver leaves the method out, and a reset removes the rest of the code. The program's standard output has the reason. To avoid the reset, choose a pattern that does not match the method",
		append(r.job.LogFields(), zap.String("method", p.name), zap.Error(why))...)
}

// awaitAgain waits until a lost part may be sent again, and reports whether it may.
func (r *partsRun) awaitAgain(p *part, err error) bool {
	if r.ctx.Err() != nil {
		return false
	}
	l := &lostPart{run: r.run, part: p, err: err, again: make(chan bool, 1)}
	select {
	case r.lost <- l:
	case <-r.ctx.Done():
		return false
	}
	select {
	case again := <-l.again:
		return again
	case <-r.ctx.Done():
		return false
	}
}

// receivePart handles a reply to a part. It drops replies about methods of other parts, and times, call trees and
// recorded calls that may be false.
func (r *partsRun) receivePart(p *part, reply javamethods.Reply) {
	w := r.work
	w.mu.Lock()
	timed := p.timed
	if of, is := reply.(*javamethods.Affected); is && timed && of.Methods != 1 {
		p.timed = false
	}
	w.mu.Unlock()
	mayBeTrue, counts := true, true
	switch reply := reply.(type) {
	case *javamethods.Affected:
		if timed && reply.Methods > 1 && r.job.Kind != task.Stack {
			w.Logger.Warn("A command matches several methods of one name, which may call each other: its times and call trees are left out",
				append(r.job.LogFields(), zap.String("method", p.name), zap.Int64("methods", reply.Methods))...)
		}
		counts = !r.listed // the list has been counted
	case *javamethods.Statistics:
		reply.Methods = slices.DeleteFunc(reply.Methods, func(m javamethods.MethodStatistics) bool { return !p.owns(m.Class, m.Method) })
		if !timed {
			for i := range reply.Methods {
				reply.Methods[i].DropTimes()
			}
			w.process.Untimed(process.Untimed{Rows: int64(len(reply.Methods))})
		}
	case *javamethods.Tree:
		root := reply.Nodes[0]
		mayBeTrue = timed && !reply.Unended && p.owns(root.Class, root.Method) && !w.process.IsRecursive(root.Class, root.Method)
	case *javamethods.Record:
		mayBeTrue = timed && !w.process.IsRecursive(p.target.Class.String(), p.target.Method.String())
		if class := p.class(); reply.IsSimple && javamethods.SimpleName(class) == reply.Class {
			reply.Class = class
		}
	}
	switch {
	case !mayBeTrue:
		r.leaveOut()
	case counts:
		r.receive(reply, timed)
	}
}
