// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/task"
)

// A task that an operator has started is treated like a configured one: the receiver sends its command again after a
// loss, and to the next process. It ends when it is over, when an operator ends it, or at shutdown. A command that
// fails before it has begun is not sent again. A configured task that an operator has ended rests until an operator
// starts it.

// carryOut carries out an order, or starts to.
func (w *Work) carryOut(o *Order, on *Link) {
	switch o.Action {
	case List:
		w.list(o, on)
	case End:
		w.endTask(o)
	case Reset:
		w.resets.enterOrder(o)
		w.endForReset()
	default:
		w.startTask(o, on)
	}
}

// startTask starts a task, unless it exists.
func (w *Work) startTask(o *Order, on *Link) {
	t := &o.Task
	there := w.find(func(j *job) bool { return j.Kind == t.Kind && j.Pattern == t.Pattern })
	switch {
	case there == nil || there.isOver():
	case there.Ended:
		o.Fail(agentcontrol.Errorf(agentcontrol.NotNow, "task %d is ending: start it afterwards", there.Number))
		return
	case there.Limit == t.Limit && there.Cycle == t.Cycle:
		o.succeed("this task exists already", taskDetail(there.Number))
		return
	default:
		o.Fail(agentcontrol.Errorf(agentcontrol.NotNow, "task %d has the same patterns, and another cycle or limit: end it first", there.Number))
		return
	}
	if w.commandsBeside(there) >= w.MaxCommands {
		o.Fail(agentcontrol.Errorf(agentcontrol.NotNow, "there are %d commands (limits.max_commands), with those that have reached their limit: end one first", w.MaxCommands))
		return
	}
	s := w.newStart(o, there)
	waited := s.job
	if t.Kind == task.Records {
		list := w.recordList()
		if on.ListsRecords {
			waited = list
		}
	}
	if waited.isOver() {
		s.fail(agentcontrol.Errorf(agentcontrol.Refused, "%w", javamethods.ErrUnsupported))
		return
	}
	waited.starts = append(waited.starts, s)
	if !waited.isRunning() {
		waited.due = w.Now()
	}
}

// commandsBeside returns the number of tasks beside one that count for limits.max_commands. Completed tasks count,
// because the receiver sends their commands to the next process.
func (w *Work) commandsBeside(one *job) (n int) {
	for _, j := range w.jobs {
		if j != one && j.Kind.Instruments() && !j.Ended && w.IsForwarded(j.Kind) {
			n++
		}
	}
	return n
}

// newStart returns the start of a job: of a completed job, or of a new one.
func (w *Work) newStart(o *Order, over *job) *startOrder {
	w.mu.Lock()
	defer w.mu.Unlock()
	if over == nil {
		t := o.Task
		t.Started = true
		j := w.addTask(&t)
		return &startOrder{order: o, job: j, undo: func() { w.forget(j) }}
	}
	limit, cycle, ended := over.Limit, over.Cycle, over.Ended
	over.restart(&o.Task)
	return &startOrder{order: o, job: over, undo: func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		over.Limit, over.Cycle, over.Ended = limit, cycle, ended
		over.finish()
		w.process.Unmatch(over.Task)
	}}
}

// settle answers the orders that wait for a run that has ended.
func (w *Work) settle(r *run, how outcome) {
	j := r.job
	switch {
	case !r.isStarting():
	case how == outcomeEnded:
		r.reportBegun()
	case r.presumed && !how.isRefusal():
		// The command counts as begun, and stays.
	case errors.Is(context.Cause(r.ctx), errCleaning):
		j.starts = append(r.starts, j.starts...)
	default:
		w.failStarts(r, how)
	}
	if j.isList() && len(j.starts) > 0 {
		j.due = w.Now()
	}
	if j.Ended {
		j.finish()
	}
	if j.Kind == task.RecordList {
		w.finishRecordJobs()
	}
	if j.Started && j.isOver() {
		w.forget(j)
	}
}

// failStarts fails the orders of a run that has not begun. It also logs the failure of a command that was presumed to
// have begun.
func (w *Work) failStarts(r *run, how outcome) {
	why := r.startError(how)
	if r.presumed && how != outcomeUnsupported { // unsupported commands are reported elsewhere
		w.Logger.Warn("Command did not start: the receiver gives it up", append(r.job.LogFields(), zap.Error(why))...)
		w.events.Problem(Refused, r.job.Task, why)
	}
	for _, s := range r.starts {
		s.fail(why)
	}
}

// finishRecordJobs ends jobs whose limit of recorded calls is reached.
func (w *Work) finishRecordJobs() {
	for _, j := range slices.Clone(w.jobs) {
		w.mu.Lock()
		full := j.Kind == task.Records && j.state == jobDue && j.hasForwardedAll()
		var waited []*startOrder
		if full {
			j.finish()
			waited = w.withdraw(j)
		}
		w.mu.Unlock()
		for _, s := range waited {
			m, known := w.process.Matched(j.Task)
			s.begun(m, known)
		}
		if !full {
			continue
		}
		w.Logger.Info("A command has reached its limit", j.LogFields()...)
		if j.Started {
			w.forget(j)
		}
	}
}

// endOrder is an order to end a job.
type endOrder struct {
	order *Order
	job   *job
	// run is the run that has to end; nil means none.
	run *run
	// over is the time when it ended; zero means that it has not.
	over time.Time
}

// endTask starts to end a task.
func (w *Work) endTask(o *Order) {
	j := w.find(func(j *job) bool { return j.Number == o.Number && j.Kind.Instruments() })
	if j == nil {
		o.Fail(agentcontrol.Errorf(agentcontrol.BadArgument, "task %d does not exist, or cannot be ended: see list", o.Number))
		return
	}
	w.ends = append(w.ends, &endOrder{order: o, job: j, run: j.run})
	for _, s := range w.endJob(j) {
		s.order.Fail(agentcontrol.Errorf(agentcontrol.Lost, "%w", errEnded))
	}
	if j.run != nil {
		return
	}
	j.finish()
	if j.Started {
		w.forget(j)
	}
}

// endJob marks a job as ended, and returns the orders that waited for its begin. Under the lock, a row of its run is
// counted either before other monitors may count its methods, or never.
func (w *Work) endJob(j *job) (waited []*startOrder) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j.Ended = true
	w.process.Unmatch(j.Task)
	if j.run != nil {
		j.run.end(errEnded)
	}
	w.process.ReleaseMethods(j.Number)
	return w.withdraw(j)
}

// withdraw removes and returns the orders that wait for the begin of a job. The caller holds the lock.
func (w *Work) withdraw(j *job) (waited []*startOrder) {
	ofJob := func(s *startOrder) bool {
		if s.job == j {
			waited = append(waited, s)
		}
		return s.job == j
	}
	for _, of := range w.jobs {
		of.starts = slices.DeleteFunc(of.starts, ofJob)
		if of.run != nil {
			of.run.starts = slices.DeleteFunc(of.run.starts, ofJob)
		}
	}
	return waited
}

// finishEnds answers orders to end a job that has ended. If a reset is running for it, it waits a short time for the
// result.
func (w *Work) finishEnds(now time.Time) {
	w.ends = slices.DeleteFunc(w.ends, func(e *endOrder) bool {
		if e.run != nil && e.job.run == e.run {
			return false
		}
		if e.over.IsZero() {
			e.over = now
		}
		asked := w.resets.round != nil && slices.Contains(w.resets.round.of, e.job.Classes())
		switch {
		case asked && now.Before(e.over.Add(silence)):
			return false
		case asked:
			e.order.succeed("ended; a reset restores its classes now")
		case slices.Contains(w.resets.owed, e.job.Classes()):
			e.order.succeed("ended; a reset restores its classes when no other command needs them, or with the command reset")
		default:
			e.order.succeed("ended")
		}
		return true
	})
}

// reportFailedReset answers orders to end a job whose reset has failed.
func (w *Work) reportFailedReset(of []javamethods.Classes, failed []error) {
	w.ends = slices.DeleteFunc(w.ends, func(e *endOrder) bool {
		i := slices.Index(of, e.job.Classes())
		if e.over.IsZero() || i < 0 || failed[i] == nil {
			return false
		}
		e.order.succeed(fmt.Sprintf("ended; the reset of its classes failed: %v", failed[i]))
		return true
	})
}

// failOrders fails all waiting orders, because the link is lost or closes.
func (w *Work) failOrders() {
	lost := agentcontrol.Errorf(agentcontrol.Lost, "the server was lost or restarted before the command was sent")
	for _, j := range slices.Clone(w.jobs) {
		for _, s := range j.starts {
			s.fail(lost)
		}
		j.starts = nil
	}
	w.finishEnds(w.Now())
	for _, o := range w.resets.orders {
		o.Fail(lost)
	}
	w.resets.orders = nil
}

// list answers an order with all tasks that instrument, and their states.
func (w *Work) list(o *Order, on *Link) {
	var items []string
	running := 0
	for _, j := range w.jobs {
		if !j.Kind.Instruments() {
			continue
		}
		if j.isRunning() {
			running++
		}
		items = append(items, w.describe(j, on))
	}
	o.finish(Result{Answer: agentcontrol.Answer{Message: fmt.Sprintf("%d of %d run", running, len(items)), Items: items}})
}

// describe returns a line of the list.
func (w *Work) describe(j *job, on *Link) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	line := fmt.Sprintf("%d %v %s", j.Number, j.Kind, j.Pattern)
	switch {
	case j.Cycle > 0:
		line += fmt.Sprintf(", cycles of %v", j.Cycle)
	case j.Limit > 0:
		line += fmt.Sprintf(", %d calls", j.Limit)
	}
	if !j.Started {
		line += ", configured"
	}
	line += ": " + w.describeState(j, on)
	if m, known := w.process.Matched(j.Task); known {
		line += fmt.Sprintf(", matches %d classes and %d methods", m.Classes, m.Methods)
	}
	return line
}

// describeState returns the state of a job. The caller holds the lock.
func (w *Work) describeState(j *job, on *Link) string {
	switch {
	case j.Ended:
		return "ended"
	case !w.IsForwarded(j.Kind):
		return "no pipeline uses its output"
	case j.isRunning() && j.Kind == task.Monitor:
		return "running"
	case j.isRunning():
		return fmt.Sprintf("running, %d calls received", j.run.total())
	case j.isOver():
		return "over"
	case !j.Kind.HasCommand(on.ListsRecords):
		return fmt.Sprintf("read from the server's list, %d calls received", j.forwarded)
	default:
		return "waiting"
	}
}
