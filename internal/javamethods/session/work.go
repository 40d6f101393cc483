// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/process"
	"github.com/callbraid/callbraid/internal/javamethods/task"
)

// Tasks are the tasks of a server. They survive its processes. The goroutine of the server owns them.
type Tasks struct {
	list []*task.Task
	// last is the highest number of a task so far.
	last int
}

// NewTasks numbers the configured tasks.
func NewTasks(configured []*task.Task) *Tasks {
	t := &Tasks{}
	for _, of := range configured {
		t.add(of)
	}
	return t
}

// Len returns the number of tasks.
func (t *Tasks) Len() int { return len(t.list) }

func (t *Tasks) add(one *task.Task) {
	t.last++
	one.Number = t.last
	t.list = append(t.list, one)
}

func (t *Tasks) remove(one *task.Task) {
	t.list = slices.DeleteFunc(t.list, func(other *task.Task) bool { return other == one })
}

// jobState is the state of a job.
type jobState uint8

const (
	// jobDue begins at its time: it has not begun so far, was lost or refused, matches nothing, or is a list.
	jobDue jobState = iota
	// jobRunning has a run.
	jobRunning
	// jobOver does not begin again in this process: its limit is reached, the server does not support it, or an
	// operator has ended it.
	jobOver
)

// job is a task for one process. The goroutine of the server owns it.
type job struct {
	*task.Task

	state jobState
	// due is the time when the job begins again, in state jobDue.
	due    time.Time
	pauses *backoff.Backoff
	// run is the current run; nil means none. It changes only under the lock of the Work.
	run *run
	// replies is the number of replies of all ended runs that count for the limit.
	replies int64
	// starts are the orders that wait for the next run to begin.
	starts []*startOrder

	// Bursts of failed runs, of refusals, and of patterns without a match; of lists that are longer than their limit;
	// and of methods that the server does not instrument.
	failing, refusing, unmatched, shortened, withoutCode logline.Burst

	// The lock of the Work guards the fields below during a run.

	// refusedParts are the names of parts that the server has refused.
	refusedParts map[string]bool
	// unprovable means that the server sends no stacks of the methods.
	unprovable bool
	// forwarded is the number of listed recorded calls that were forwarded for the job.
	forwarded int64
}

// isList reports whether the job is a list, which ends by itself and is sent repeatedly.
func (j *job) isList() bool { return j.Every > 0 }

// The following methods read and change the state.
func (j *job) isRunning() bool { return j.state == jobRunning }
func (j *job) isOver() bool    { return j.state == jobOver }
func (j *job) finish()         { j.state = jobOver }

// started sets the run that has begun.
func (j *job) started(r *run) {
	j.state, j.run, j.due = jobRunning, r, r.began
	r.starts, j.starts = j.starts, nil
}

// stopped removes the run that has ended.
func (j *job) stopped(now time.Time) {
	j.state, j.run, j.due = jobDue, nil, now
}

// restart makes a completed job due again, as a task with the same patterns. The caller holds the lock.
func (j *job) restart(t *task.Task) {
	j.Limit, j.Cycle, j.Ended = t.Limit, t.Cycle, false
	j.state, j.due, j.replies, j.forwarded = jobDue, time.Time{}, 0, 0
}

// rest returns the rest of the limit; 0 means no limit.
func (j *job) rest() javamethods.Limit {
	if j.Limit == 0 || j.isList() {
		return 0
	}
	return j.Limit - javamethods.Limit(j.replies)
}

// hasForwardedAll reports whether the limit of listed recorded calls is reached. The caller holds the lock.
func (j *job) hasForwardedAll() bool { return j.Limit > 0 && j.forwarded >= int64(j.Limit) }

// Work has the jobs of one process, and the resets that it needs. It survives a lost link, and ends with the process.
// One goroutine owns it; runs use it under its lock.
type Work struct {
	*Settings
	tasks   *Tasks
	process *process.Process
	events  Events
	// who identifies the process.
	who Identity

	// jobs and their runs change only under the lock.
	mu   sync.Mutex
	jobs []*job
	// runs is the number of all runs so far; commands is the number of running commands.
	runs     int64
	commands atomic.Int64

	resets  resets
	gate    gate
	foreign foreignSessions
	// ends are the orders that wait for the end of a job.
	ends []*endOrder

	// garbled is a burst of replies that could not be decoded. elsewhere is a burst of recorded calls with times of
	// another time zone.
	garbled, elsewhere logline.Burst
}

// NewWork returns the work for a process, before any command.
func NewWork(s *Settings, tasks *Tasks, p *process.Process, events Events, who Identity) *Work {
	w := &Work{Settings: s, tasks: tasks, process: p, events: events, who: who, resets: newResets(s), gate: newGate()}
	for _, t := range tasks.list {
		w.jobs = append(w.jobs, w.newJob(t))
	}
	return w
}

func (w *Work) newJob(t *task.Task) *job {
	j := &job{Task: t, pauses: backoff.New(w.Reconnect)}
	if t.Ended || !w.IsForwarded(t.Kind) {
		j.finish()
	}
	return j
}

// Renew sends the results of the work to another Process and other events, because the memory of the old one is freed.
// It may be called only between sessions.
func (w *Work) Renew(p *process.Process, events Events) {
	w.process, w.events = p, events
}

// Who returns the identity of the process, with our last session.
func (w *Work) Who() Identity { return w.who }

// Identified records that the same process has identified itself again.
func (w *Work) Identified(who Identity) {
	w.process.Identified(who.Sessions, who.HasSessions)
	w.who.Session = max(w.who.Session, who.Session)
}

// Commands returns the number of running commands. Several goroutines may call it.
func (w *Work) Commands() int64 { return w.commands.Load() }

// HasLeftovers reports whether commands may have left instrumentation in classes.
func (w *Work) HasLeftovers() bool { return len(w.resets.owed) > 0 }

// Owe adds classes that may have instrumentation. It may be called only between sessions.
func (w *Work) Owe(classes []javamethods.Classes) {
	for _, of := range classes {
		w.resets.owe(of)
	}
}

// Restore sends the owed resets over a new link, once, if the process is still the same.
func (w *Work) Restore(ctx context.Context, l *Link) {
	// A process that does not identify itself counts as the same.
	who := Identity{Protocol: l.Protocol}
	if err := w.askSessions(ctx, l, &who); err == nil && w.who.IsOther(who) {
		return // another process is not instrumented
	}
	w.resets.askLast(ctx, l)
}

// FailRestore reports that no link was possible for Restore.
func (w *Work) FailRestore(why error) { w.resets.logFailure(why) }

// find returns the first job for which is returns true, or nil.
func (w *Work) find(is func(*job) bool) *job {
	if i := slices.IndexFunc(w.jobs, is); i >= 0 {
		return w.jobs[i]
	}
	return nil
}

// addTask adds a task to the server's tasks. The caller holds the lock.
func (w *Work) addTask(t *task.Task) *job {
	w.tasks.add(t)
	j := w.newJob(t)
	w.jobs = append(w.jobs, j)
	return j
}

// forget removes a task that an operator has started.
func (w *Work) forget(j *job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j.finish()
	w.tasks.remove(j.Task)
	w.jobs = slices.DeleteFunc(w.jobs, func(other *job) bool { return other == j })
	w.process.Unmatch(j.Task)
	w.process.ReleaseMethods(j.Number)
}

// RecordList returns the task that lists recorded calls, for all tasks of recorded calls.
func (s *Settings) RecordList() *task.Task {
	return &task.Task{Kind: task.RecordList, Every: s.RecordsInterval}
}

// recordList returns the job that lists recorded calls by GP.
func (w *Work) recordList() *job {
	if list := w.find(func(j *job) bool { return j.Kind == task.RecordList }); list != nil {
		return list
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.addTask(w.RecordList())
}

// isAskable reports whether a due job may begin, by a protocol.
func (w *Work) isAskable(j *job, on *Link) bool {
	switch {
	case j.state != jobDue, !j.Kind.HasCommand(on.ListsRecords):
		return false
	case j.Kind == task.RecordList: // only tasks of recorded calls need the list
		return w.find(func(j *job) bool { return j.Kind == task.Records && !j.isOver() }) != nil
	default:
		return true
	}
}

// wantsRecord reports whether a task needs a recorded call of a list, and counts it. A task with a regular expression
// gets all calls, because the receiver cannot match Java's expressions. The caller holds the lock.
func (w *Work) wantsRecord(of *javamethods.Record) bool {
	for _, j := range w.jobs {
		if j.Kind != task.Records || j.Ended || j.hasForwardedAll() {
			continue
		}
		if t := &j.Target; t.Regexp || t.Class.Matches(of.Class) && t.Method.Matches(of.Method) {
			j.forwarded++
			return true
		}
	}
	w.process.Unwanted()
	return false
}

// isTraced reports whether a run has a call tree for a recorded call. The caller holds the lock.
func (w *Work) isTraced(of *javamethods.Record) bool {
	return slices.ContainsFunc(w.jobs, func(j *job) bool { return j.run != nil && j.run.traces(of) })
}

// busyClasses returns the classes that running commands may have instrumented.
func (w *Work) busyClasses() (busy []javamethods.Classes) {
	for _, j := range w.jobs {
		if j.run != nil && j.Kind.Instruments() {
			busy = append(busy, j.Classes())
		}
	}
	return busy
}

// endForReset ends all commands that may have instrumented classes, so that a reset can be sent.
func (w *Work) endForReset() {
	for _, j := range w.jobs {
		if j.run != nil && j.Kind.Instruments() {
			j.run.end(errCleaning)
		}
	}
}

// elsewhere is the difference between the end of a just recorded call and the present from which another time zone is
// assumed: zones differ by quarters of an hour, and clocks by less.
const elsewhere = 10 * time.Minute

// compareClocks compares the end of a call that has just ended with the present.
func (w *Work) compareClocks(ended time.Time) {
	now := w.Now()
	ahead := ended.Sub(now)
	if ahead.Abs() < elsewhere || ended.Unix() <= 0 {
		w.elsewhere.Over()
		return
	}
	if since, due := w.elsewhere.Count(now); due {
		w.Logger.Warn("New recorded calls have times far from now: set timezone to that of the program, or correct its clock",
			zap.Duration("ahead", ahead.Round(time.Second)), zap.String("timezone", w.Timezone), zap.Int("times_since_last_line", since))
	}
}

// reportUnmatched reports that the patterns of a job match nothing, once until they match. Several goroutines may call
// it.
func (w *Work) reportUnmatched(j *job) {
	if _, due := j.unmatched.Count(w.Now()); due {
		w.Logger.Warn("A pattern matches no class or method: the receiver tries again", j.LogFields()...)
		w.events.Problem(Unmatched, j.Task, nil)
	}
}

// silenced returns the running commands that another client's reset may have silenced: all commands that reported calls
// before, if none of them has reported calls since.
func (w *Work) silenced(now time.Time) (silenced []*run) {
	since := w.foreign.since
	if since.IsZero() {
		return nil
	}
	var cycle time.Duration
	reporting := false
	w.mu.Lock()
	for _, j := range w.jobs {
		r := j.run
		if r == nil || !j.Kind.Instruments() || r.began.After(since) || r.lastCall.IsZero() {
			continue
		}
		silenced = append(silenced, r)
		cycle = max(cycle, j.Cycle)
		// A cycle that began earlier may report calls before the reset.
		reporting = reporting || r.lastCall.After(since.Add(j.Cycle))
	}
	w.mu.Unlock()
	// A reset affects all classes: if one command reports calls, there was none.
	if !w.foreign.endSuspicion(now, reporting || len(silenced) == 0, 2*cycle+w.StateInterval) {
		return nil
	}
	return silenced
}

// run is one execution of a job. Its own goroutine handles its replies. Other goroutines read it after its end, or
// under the lock of the Work.
type run struct {
	job     *job
	work    *Work
	link    *Link
	details *details
	// number identifies the run within the process.
	number int64
	ctx    context.Context
	end    context.CancelCauseFunc
	// began is the time when the run began.
	began time.Time

	// The lock of the Work guards the fields below until the run has ended.

	// starts are orders that wait for the command to begin. presumed means that they were answered without a reply of
	// the server. over means that the run has ended.
	starts         []*startOrder
	presumed, over bool
	// replies is the number of replies that count for the limit.
	replies int64
	// lastCall is the time of the last reply that reported a call; zero means never.
	lastCall time.Time
	// affected means that the server has reported its matches. matched means that there are matches.
	affected, matched bool
	// parts are the commands of the pattern, one for each method; nil means that there is only one command.
	parts []*part
	// err is the error of the command, after its end.
	err error
}

// ask sends the job's command and waits for its end.
func (r *run) ask() error {
	return r.link.Run(r.ctx, r.job.Command(r.job.rest()), func(reply javamethods.Reply) { r.receive(reply, false) })
}

// isFull reports whether the limit is reached.
func (r *run) isFull() bool {
	return r.job.Limit > 0 && r.total() >= int64(r.job.Limit)
}

// total returns the number of replies that count for the limit: of this run for a list, and of all runs otherwise.
func (r *run) total() int64 {
	if r.job.isList() {
		return r.replies
	}
	return r.job.replies + r.replies
}

// receive handles a reply. With checked, times of rows are withheld until they are known to be true.
func (r *run) receive(reply javamethods.Reply, checked bool) {
	w := r.work
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.ctx.Err() != nil && r.job.isList() {
		return // a list that was ended is not complete
	}
	w.process.Received()
	if reportsCall(reply) {
		r.lastCall = w.Now()
	}
	r.handle(reply, checked)
	if r.isStarting() && r.hasBegun(reply) && r.ctx.Err() == nil {
		r.reportBegun()
	}
}

// reportsCall reports whether a reply shows that the server sees calls.
func reportsCall(reply javamethods.Reply) bool {
	switch reply := reply.(type) {
	case *javamethods.Statistics:
		for i := range reply.Methods {
			if reply.Methods[i].Calls > 0 {
				return true
			}
		}
	case *javamethods.Tree, *javamethods.CallStack, *javamethods.Watch, *javamethods.Record, *javamethods.RecordDetail:
		return true
	}
	return false
}

// handle processes a reply. Kinds that the task does not have are ignored. The caller holds the lock.
func (r *run) handle(reply javamethods.Reply, checked bool) {
	w, t := r.work, r.job.Task
	list := process.List{Task: t.Number, Run: r.number}
	switch reply := reply.(type) {
	case *javamethods.Affected:
		r.affect(reply.Classes, reply.Methods)
	case *javamethods.Statistics:
		w.process.Rows(process.Monitor{Number: t.Number, Cycle: t.Cycle}, reply.Methods, checked)
	case *javamethods.Tree:
		if r.count() {
			w.events.Tree(reply)
		}
	case *javamethods.CallStack:
		if r.count() {
			w.events.Stack(t, reply)
		}
	case *javamethods.Watch:
		if r.count() {
			w.events.Watch(t, reply)
		}
	case *javamethods.Record:
		r.record(reply)
	case *javamethods.RecordDetail:
		if r.count() {
			w.events.Call(&Call{Record: reply.Record, Task: t, Received: w.Now(), Detail: reply})
		}
	case *javamethods.Class:
		if r.count() {
			if change := w.process.Class(list, reply); change != process.Unchanged {
				w.events.Class(t, reply, change)
			}
		}
	case *javamethods.Method:
		if r.count() {
			if change := w.process.Method(list, reply); change != process.Unchanged {
				w.events.Method(t, reply, change)
			}
		}
	}
}

// count counts a reply for the limit, and reports whether it is within the limit. One beyond the limit ends the run.
func (r *run) count() bool {
	if r.isFull() {
		r.end(errEnough)
		return false
	}
	r.replies++
	return true
}

// affect stores the counts of matched classes and methods. A command without a match is ended, because it would not see
// classes that are loaded later. The caller holds the lock.
func (r *run) affect(classes, methods int64) {
	r.affected = true
	r.matched = r.matched || methods > 0 || classes > 0
	if !r.job.Kind.Instruments() {
		return
	}
	r.work.process.Match(r.job.Task, process.Matched{Classes: classes, Methods: methods})
	if r.matched {
		r.job.unmatched.Over()
		return
	}
	if !r.isStarting() {
		r.work.reportUnmatched(r.job)
	}
	r.end(errUnmatched)
}

// record handles a recorded call: a new one, or one of a list. The caller holds the lock.
func (r *run) record(of *javamethods.Record) {
	switch {
	case r.job.Kind == task.RecordList:
		if !r.work.process.IsNewRecord(of) || !r.work.wantsRecord(of) {
			return
		}
	case r.count():
		r.work.compareClocks(of.Time)
	default:
		return
	}
	r.details.add(of, r.work.isTraced(of))
}

// traces reports whether the run has a call tree for a recorded call, as far as names show. For a command with a
// regular expression this is unknown, and the result is false. The caller holds the lock.
func (r *run) traces(of *javamethods.Record) bool {
	switch t := &r.job.Target; {
	case r.job.Kind != task.Trace || r.isFull():
		return false
	case r.parts != nil:
		for _, p := range r.parts {
			if p.tracesCall(of) {
				return true
			}
		}
		return false
	case !r.affected || t.Regexp || !t.Method.Matches(of.Method):
		return false
	default:
		return t.Class.Matches(of.Class) || of.IsSimple && !strings.Contains(of.Class, ".") && t.Class.MayMatchSimpleName(of.Class)
	}
}

// mayHaveInstrumented reports whether the command may have left instrumentation in classes.
func (r *run) mayHaveInstrumented() bool {
	switch {
	case !r.job.Kind.Instruments():
		return false
	case r.affected: // also if a later request of the command did not reach the server
		return r.matched
	case r.err != nil && r.link.Unsent(r.err):
		return false
	default:
		return true
	}
}

// isStarting reports whether an order waits for the command to begin. Its failure is then the order's result, and the
// command is not sent again.
func (r *run) isStarting() bool { return len(r.starts) > 0 }

// hasBegun reports whether a reply shows that the command has begun. The caller holds the lock.
func (r *run) hasBegun(reply javamethods.Reply) bool {
	switch reply := reply.(type) {
	case *javamethods.Affected:
		return r.matched
	case *javamethods.Statistics:
		return len(reply.Methods) > 0
	default:
		return !r.job.isList() // a list has to be complete
	}
}

// reportBegun answers the orders: the command has begun. The caller holds the lock.
func (r *run) reportBegun() {
	m, known := r.work.process.Matched(r.job.Task)
	for _, s := range r.starts {
		s.begun(m, known)
	}
	r.starts = nil
}

// silence is the time without a refusal after which a GP command counts as begun: servers need not confirm a command.
const silence = time.Second

// presumeBegun answers the orders after the silence: the server has not refused the command.
func (r *run) presumeBegun() {
	if !r.isStarting() || r.job.isList() {
		return
	}
	time.AfterFunc(silence, func() {
		r.work.mu.Lock()
		defer r.work.mu.Unlock()
		if r.over {
			return
		}
		for _, s := range r.starts {
			r.presumed = true
			s.order.succeed("command sent; no reply yet", taskDetail(s.job.Number))
		}
	})
}

// startError returns the reason why an order's command has not begun.
func (r *run) startError(how outcome) *agentcontrol.Error {
	switch how {
	case outcomeUnmatched:
		return agentcontrol.Errorf(agentcontrol.Refused, "the pattern matches no class or method that the server can instrument; not tried again")
	case outcomeUnsupported, outcomeRefused:
		return agentcontrol.Errorf(agentcontrol.Refused, "%w", r.err)
	default:
		return agentcontrol.Errorf(agentcontrol.Lost, "the command was lost before the first reply: %w", orEarly(r.err))
	}
}

// leaveOut counts a dropped reply whose times may be false.
func (r *run) leaveOut() {
	if r.job.Kind == task.Trace {
		r.work.process.Untimed(process.Untimed{Trees: 1})
	} else {
		r.work.process.Untimed(process.Untimed{Records: 1})
	}
}

// outcome returns the outcome of the run.
func (r *run) outcome() outcome {
	cause := context.Cause(r.ctx)
	switch {
	case errors.Is(cause, errUnmatched):
		return outcomeUnmatched
	case errors.Is(cause, errEnough), !r.job.isList() && r.isFull():
		return outcomeEnded // the limit is reached, so later errors do not matter
	case errors.Is(cause, errPart):
		return outcomeOf(r.err)
	case r.ctx.Err() != nil:
		return outcomeStopped
	case r.err == nil && r.job.isList():
		return outcomeEnded
	default:
		// A command that is no list ends only by its limit.
		return outcomeOf(r.err)
	}
}

// startOrder is an order to start a job whose command has not begun so far.
type startOrder struct {
	order *Order
	job   *job
	// undo restores the state of the job before the order.
	undo func()
}

// begun answers the order: the command has begun.
func (s *startOrder) begun(m process.Matched, known bool) {
	details := []agentcontrol.Detail{taskDetail(s.job.Number)}
	if known {
		details = append(details, agentcontrol.Detail{Name: "matching classes", Value: strconv.FormatInt(m.Classes, 10)},
			agentcontrol.Detail{Name: "matching methods", Value: strconv.FormatInt(m.Methods, 10)})
	}
	s.order.succeed("started", details...)
}

// fail answers the order with an error, and undoes it.
func (s *startOrder) fail(why *agentcontrol.Error) {
	s.undo()
	s.order.Fail(why)
}
