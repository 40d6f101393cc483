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
	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/link"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/process"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/task"
)

// Tasks are what a server is asked for, whichever process of it is there. The goroutine of the
// server owns them.
type Tasks struct {
	list []*task.Task
	// last is the highest number that a task had.
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

// Len returns how many there are.
func (t *Tasks) Len() int { return len(t.list) }

func (t *Tasks) add(one *task.Task) {
	t.last++
	one.Number = t.last
	t.list = append(t.list, one)
}

func (t *Tasks) remove(one *task.Task) {
	t.list = slices.DeleteFunc(t.list, func(other *task.Task) bool { return other == one })
}

// jobState is what becomes of a job.
type jobState uint8

const (
	// jobDue begins at its time: it has not begun yet, was lost or refused, matches nothing, or is
	// a list.
	jobDue jobState = iota
	// jobRunning has a run.
	jobRunning
	// jobOver does not begin again in this process: its limit is reached, the server does not
	// support it, or an operator has ended it.
	jobOver
)

// job is a task as it is asked of one process. The goroutine of the server owns it.
type job struct {
	*task.Task

	state jobState
	// due is when the job begins again, where it is due.
	due    time.Time
	pauses *backoff.Backoff
	// run is the current one; nil: none. It changes with the lock of the Work.
	run *run
	// replies counts those that the limit is for, of all runs that have ended.
	replies int64
	// starts are orders that wait for the next run to begin.
	starts []*startOrder

	// Bursts of runs that failed, that the server refused, and whose pattern matched nothing; of
	// lists that are longer than their limit; and of methods into which the server puts no code.
	failing, refusing, unmatched, shortened, withoutCode logline.Burst

	// The lock of the Work guards all below while a run goes on.

	// refusedParts are the names of parts that the server has refused.
	refusedParts map[string]bool
	// unprovable: the server sends no stacks of the methods.
	unprovable bool
	// forwarded counts recorded calls of lists that were forwarded for the job.
	forwarded int64
}

// isList reports whether the job is a list, which ends by itself and is asked for again and again.
func (j *job) isList() bool { return j.Every > 0 }

// isRunning and the other events change the state.
func (j *job) isRunning() bool { return j.state == jobRunning }
func (j *job) isOver() bool    { return j.state == jobOver }
func (j *job) finish()         { j.state = jobOver }

// started enters a run that has begun.
func (j *job) started(r *run) {
	j.state, j.run, j.due = jobRunning, r, r.began
	r.starts, j.starts = j.starts, nil
}

// stopped enters the end of the run.
func (j *job) stopped(now time.Time) {
	j.state, j.run, j.due = jobDue, nil, now
}

// restart has a job that is over begin again, as a task of the same patterns. The lock is held.
func (j *job) restart(t *task.Task) {
	j.Limit, j.Cycle, j.Ended = t.Limit, t.Cycle, false
	j.state, j.due, j.replies, j.forwarded = jobDue, time.Time{}, 0, 0
}

// left is the rest of the limit; 0: there is no limit.
func (j *job) left() greys.Limit {
	if j.Limit == 0 || j.isList() {
		return 0
	}
	return j.Limit - greys.Limit(j.replies)
}

// hasForwardedAll reports whether as many recorded calls of lists were forwarded as the limit has.
// The lock is held.
func (j *job) hasForwardedAll() bool { return j.Limit > 0 && j.forwarded >= int64(j.Limit) }

// Work is what one process is asked for, and what commands have left in it. It stays when the link
// is lost, and ends with the process. One goroutine owns it; runs use it with its lock.
type Work struct {
	*Settings
	tasks   *Tasks
	process *process.Process
	events  Events
	// who is what the process was identified by.
	who Identity

	// jobs change with the lock, and so do runs of them.
	mu   sync.Mutex
	jobs []*job
	// runs is how many there were, commands how many there are.
	runs     int64
	commands atomic.Int64

	resets  resets
	gate    gate
	foreign foreignSessions
	// ends are orders that wait for the end of a job.
	ends []*endOrder

	// garbled is a burst of replies that could not be decoded, elsewhere one of recorded calls whose
	// times are of another time zone.
	garbled, elsewhere logline.Burst
}

// NewWork makes the work for a process, of which nothing is asked yet.
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

// Renew has the results of the same work go to another Process: the memory of the old one is freed.
// No session goes on.
func (w *Work) Renew(p *process.Process, events Events) {
	w.process, w.events = p, events
}

// Who returns what the process was identified by, with its last session.
func (w *Work) Who() Identity { return w.who }

// Identified enters that the same process has identified itself again.
func (w *Work) Identified(who Identity) {
	w.process.Identified(who.Sessions, who.HasSessions)
	w.who.Session = max(w.who.Session, who.Session)
}

// Commands is how many commands run. Several goroutines may call it.
func (w *Work) Commands() int64 { return w.commands.Load() }

// HasLeftovers reports whether commands may have left code in classes.
func (w *Work) HasLeftovers() bool { return len(w.resets.owed) > 0 }

// Restore removes the code of commands from a process over a new link, once, if it is still the
// same.
func (w *Work) Restore(ctx context.Context, l *link.Link) {
	// A process that does not identify itself counts as the same.
	who := Identity{Protocol: l.Protocol}
	if err := w.askSessions(ctx, l, &who); err == nil && w.who.IsOther(who) {
		return // it has nothing of ours
	}
	w.resets.askLast(ctx, l)
}

// FailRestore reports that no link could be made to Restore the classes.
func (w *Work) FailRestore(why error) { w.resets.logFailure(why) }

// find returns the first job for which is returns true, or nil.
func (w *Work) find(is func(*job) bool) *job {
	if i := slices.IndexFunc(w.jobs, is); i >= 0 {
		return w.jobs[i]
	}
	return nil
}

// addTask adds a task to the server's. The lock is held.
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

// RecordList is the task that lists recorded calls, for all tasks of recorded calls.
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

// isAskable reports whether a job begins when it is due, by a protocol.
func (w *Work) isAskable(j *job, protocol greys.Protocol) bool {
	switch {
	case j.state != jobDue, !j.Kind.AskedBy(protocol):
		return false
	case j.Kind == task.RecordList: // nothing else wants it
		return w.find(func(j *job) bool { return j.Kind == task.Records && !j.isOver() }) != nil
	default:
		return true
	}
}

// wantsRecord reports whether a task asks for a recorded call of a list, and counts it. Whether a
// regular expression of Java's matches is unknown here: it asks for all. The lock is held.
func (w *Work) wantsRecord(of *greys.Record) bool {
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

// isTraced reports whether a run has a call tree for a recorded call. The lock is held.
func (w *Work) isTraced(of *greys.Record) bool {
	return slices.ContainsFunc(w.jobs, func(j *job) bool { return j.run != nil && j.run.traces(of) })
}

// busyClasses are the classes that running commands may have instrumented.
func (w *Work) busyClasses() (busy []greys.Classes) {
	for _, j := range w.jobs {
		if j.run != nil && j.Kind.Instruments() {
			busy = append(busy, j.Classes())
		}
	}
	return busy
}

// endForReset ends all commands that may have instrumented classes, so that a reset can be asked.
func (w *Work) endForReset() {
	for _, j := range w.jobs {
		if j.run != nil && j.Kind.Instruments() {
			j.run.end(errCleaning)
		}
	}
}

// elsewhere is how far the time of a call that was recorded just now is from now, at least, where
// it is of another time zone: zones differ by quarters of an hour, and clocks by less.
const elsewhere = 10 * time.Minute

// compareClocks compares the end of a call that has just ended with the time here.
func (w *Work) compareClocks(ended time.Time) {
	now := w.Now()
	ahead := ended.Sub(now)
	if ahead.Abs() < elsewhere || ended.Unix() <= 0 {
		w.elsewhere.Over()
		return
	}
	if since, say := w.elsewhere.Say(now); say {
		w.Logger.Warn("Calls that were recorded just now ended at another time: set timezone to that of the program, or its clock",
			zap.Duration("ahead", ahead.Round(time.Second)), zap.String("timezone", w.Timezone), zap.Int("times_since_last_line", since))
	}
}

// reportUnmatched reports that the patterns of a job match nothing, once until they do. Several
// goroutines may call it.
func (w *Work) reportUnmatched(j *job) {
	if _, say := j.unmatched.Say(w.Now()); say {
		w.Logger.Warn("A pattern matches no class or method: the receiver tries again", j.LogFields()...)
		w.events.Problem(Unmatched, j.Task, nil)
	}
}

// silenced returns the running commands that another client's reset may have silenced: all that
// reported calls before, if none of them has reported any since.
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
		// A cycle that had begun before may report calls of its begin.
		reporting = reporting || r.lastCall.After(since.Add(j.Cycle))
	}
	w.mu.Unlock()
	// A reset is for all classes: where one command reports calls, there was none.
	if !w.foreign.endSuspicion(now, reporting || len(silenced) == 0, 2*cycle+w.StateInterval) {
		return nil
	}
	return silenced
}

// run is one time that a job is asked for. A goroutine of its own handles its replies. Other
// goroutines read it after its end, or with the lock of the Work.
type run struct {
	job     *job
	work    *Work
	link    *link.Link
	details *details
	// number tells the run from others of the process.
	number int64
	ctx    context.Context
	end    context.CancelCauseFunc
	// began is when the run began.
	began time.Time

	// The lock of the Work guards all below until the run has ended.

	// starts are orders that wait for the command to begin. presumed: they were told that the server
	// has not refused it. over: the run has ended.
	starts         []*startOrder
	presumed, over bool
	// replies counts those that the limit is for.
	replies int64
	// lastCall is when a reply reported a call last; zero: never.
	lastCall time.Time
	// affected: the server has said what the patterns match. matched: they match something.
	affected, matched bool
	// parts are the commands of the pattern, where each method has one; nil: there is one command.
	parts []*part
	// err is the error of the command, after its end.
	err error
}

// ask asks for the job until its command has ended.
func (r *run) ask() error {
	return r.link.Run(r.ctx, r.job.Command(r.job.left()), func(reply greys.Reply) { r.receive(reply, false) })
}

// isFull reports whether as many replies have come as the limit has.
func (r *run) isFull() bool {
	return r.job.Limit > 0 && r.total() >= int64(r.job.Limit)
}

// total is how many replies have come that the limit is for: of this run for a list, and of all
// runs otherwise.
func (r *run) total() int64 {
	if r.job.isList() {
		return r.replies
	}
	return r.job.replies + r.replies
}

// receive handles a reply. checked has times of rows withheld until they are known to be true.
func (r *run) receive(reply greys.Reply, checked bool) {
	w := r.work
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.ctx.Err() != nil {
		return // it is no longer wanted
	}
	w.process.Received()
	if reportsCall(reply) {
		r.lastCall = w.Now()
	}
	r.handle(reply, checked)
	if r.isStarting() && r.hasBegun(reply) {
		r.reportBegun()
	}
}

// reportsCall reports whether a reply shows that the server sees calls.
func reportsCall(reply greys.Reply) bool {
	switch reply := reply.(type) {
	case *greys.Statistics:
		for i := range reply.Methods {
			if reply.Methods[i].Calls > 0 {
				return true
			}
		}
	case *greys.Tree, *greys.CallStack, *greys.Record:
		return true
	}
	return false
}

// handle handles a reply of the kinds that a task has; others have no effect. The lock is held.
func (r *run) handle(reply greys.Reply, checked bool) {
	w, t := r.work, r.job.Task
	list := process.List{Task: t.Number, Run: r.number}
	switch reply := reply.(type) {
	case *greys.Affected:
		r.affect(reply.Classes, reply.Methods)
	case *greys.Statistics:
		w.process.Rows(t, reply.Methods, checked)
	case *greys.Tree:
		if r.count() {
			w.events.Tree(reply)
		}
	case *greys.CallStack:
		if r.count() {
			w.events.Stack(t, reply)
		}
	case *greys.Record:
		r.record(reply)
	case *greys.Class:
		if r.count() {
			if change := w.process.Class(list, reply); change != process.Unchanged {
				w.events.Class(t, reply, change)
			}
		}
	case *greys.Method:
		if r.count() {
			if change := w.process.Method(list, reply); change != process.Unchanged {
				w.events.Method(t, reply, change)
			}
		}
	}
}

// count counts a reply that the limit is for, and reports whether it is within the limit. One
// beyond ends the run.
func (r *run) count() bool {
	if r.isFull() {
		r.end(errEnough)
		return false
	}
	r.replies++
	return true
}

// affect enters what the patterns of the command match. A command without a match is ended: it
// would not see classes that are loaded later. The lock is held.
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

// record handles a recorded call: one that has just ended, or one of a list. The lock is held.
func (r *run) record(of *greys.Record) {
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

// traces reports whether the run has a call tree for a recorded call, as far as names show. Which
// trees of a regular expression's command are for it is unknown. The lock is held.
func (r *run) traces(of *greys.Record) bool {
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

// mayHaveInstrumented reports whether the command may have left code in classes.
func (r *run) mayHaveInstrumented() bool {
	switch {
	case !r.job.Kind.Instruments():
		return false
	case r.err != nil && r.link.Unsent(r.err):
		return false
	case r.affected:
		return r.matched
	default:
		return true
	}
}

// isStarting reports whether an order waits for the command to begin. A failure is its result then,
// and the command is not asked for again.
func (r *run) isStarting() bool { return len(r.starts) > 0 }

// hasBegun reports whether a reply shows that the command has begun. The lock is held.
func (r *run) hasBegun(reply greys.Reply) bool {
	switch reply := reply.(type) {
	case *greys.Affected:
		return r.matched
	case *greys.Statistics:
		return len(reply.Methods) > 0
	default:
		return !r.job.isList() // a list has to be read to its end
	}
}

// reportBegun tells the orders that the command has begun. The lock is held.
func (r *run) reportBegun() {
	m, known := r.work.process.Matched(r.job.Task)
	for _, s := range r.starts {
		s.begun(m, known)
	}
	r.starts = nil
}

// silence is how long a server may send nothing by GP until a command counts as begun: it need not
// confirm that.
const silence = time.Second

// presumeBegun tells the orders after the silence that the server has not refused the command.
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

// startError is why a command that an order starts has not begun.
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

// leaveOut counts a reply whose times may be false, and that is left out for it.
func (r *run) leaveOut() {
	if r.job.Kind == task.Trace {
		r.work.process.Untimed(counters.Untimed{Trees: 1})
	} else {
		r.work.process.Untimed(counters.Untimed{Records: 1})
	}
}

// outcome returns how the run ended.
func (r *run) outcome() outcome {
	cause := context.Cause(r.ctx)
	switch {
	case errors.Is(cause, errUnmatched):
		return outcomeUnmatched
	case errors.Is(cause, errEnough), !r.job.isList() && r.isFull():
		return outcomeEnded // whatever came then: nothing is left to ask for
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

// startOrder is an order to start a job whose command has not begun yet.
type startOrder struct {
	order *Order
	job   *job
	// undo makes the job what it was before the order.
	undo func()
}

// begun reports that the command has begun.
func (s *startOrder) begun(m process.Matched, known bool) {
	details := []agentcontrol.Detail{taskDetail(s.job.Number)}
	if known {
		details = append(details, agentcontrol.Detail{Name: "matching classes", Value: strconv.FormatInt(m.Classes, 10)},
			agentcontrol.Detail{Name: "matching methods", Value: strconv.FormatInt(m.Methods, 10)})
	}
	s.order.succeed("started", details...)
}

// fail reports that the command has not begun, and undoes the order.
func (s *startOrder) fail(why *agentcontrol.Error) {
	s.undo()
	s.order.Fail(why)
}
