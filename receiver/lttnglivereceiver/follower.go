// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
)

// follower reads one session, over as many connections as it takes. All of it is done
// by one goroutine.
type follower struct {
	env           *environment
	logger        *zap.Logger
	id            uint64
	host, session string
	opened        time.Time
	// perProcess says that the session has buffers for each process.
	perProcess bool

	// health is its part of the component's: it fails where the session can't be attached or
	// read, and works again once it has been read for some time.
	health *serverhealth.Part
	// account is the memory of the session; nil: it is not read.
	// noMemory is why it has to be.
	account  *account
	noMemory error
	handover *handover.Batches
	logs     *logBatcher
	rules    map[string]rulePart
	// traces are those that are read, or were when the connection was lost; forgotten says
	// that there were others, which have ended.
	traces    map[string]*trace
	forgotten bool
	buffers   buffers
	ended     endedStreams
	// followed is how many processes are followed, and waiting how many of their call events
	// wait for names, in all traces.
	followed, waiting int
	// names is how many bytes of names their processes remember; forgetting says that they
	// are forgetting them.
	names      int
	forgetting bool
	// objects is how many bytes the lists of their objects take.
	objects int
	// uncounted is how much of names and objects came since the account was charged,
	// measured what the session held beside what is counted as it comes, and listed what
	// the list of its streams takes.
	uncounted, measured, listed int
	// last are processes whose last batches are to be handed on.
	last []*process
	// backoff is that of connections and bad data, detached that of an account that had
	// to be closed, and attachedAt when the session was attached last.
	backoff, detached *backoff.Backoff
	attachedAt        time.Time
	// saved is when positions were stored last.
	saved time.Time
	// held is time since began that doesn't count for max_delay, since the session was
	// not read; stopped is when it was read last.
	held           time.Duration
	began, stopped time.Time

	// attached says that the session was attached once; said that a line has said why it is
	// no longer, so that there is one when it is again.
	attached, said bool
	// The warnings that a session gets once.
	warned map[string]bool
	// lines are those that can come very often.
	lines sessionLines

	counts sessionCounts
	// done is closed when the follower ends; over says then that the session was
	// closed, and has nothing more to say while it is still listed.
	done chan struct{}
	over bool
	// outlived says that the connection is gone on which the session was listed. It is
	// the watcher's.
	outlived bool
}

// sessionCounts are what metrics say of a session.
type sessionCounts struct {
	streams, processes          atomic.Int64
	packets, packetsLost, bytes atomic.Int64
	events, discarded           atomic.Int64
	// newest is up to when events were handed on, in Unix nanoseconds; 0: none was.
	newest atomic.Int64
}

// saveInterval is how often positions are stored: what was handed on since then is
// read again if the collector is killed.
const saveInterval = 5 * time.Second

func newFollower(env *environment, s lttnglive.Session) *follower {
	logger := env.logger.With(zap.String("session", sessionName(s)))
	return &follower{
		env: env, logger: logger, health: env.health.Part("session " + sessionName(s)), id: s.ID, host: s.Host, session: s.Name, opened: env.now(), began: env.now(), stopped: env.now(), saved: env.now(),
		handover: newHandover(env.ctx, env, logger), detached: env.detachedBackoff(), logs: newLogBatcher(env), rules: rulesByEvent(env.config.CallRules),
		traces: map[string]*trace{}, backoff: backoff.New(env.config.Reconnect),
		buffers: buffers{most: env.config.Limits.MaxWaitingBytes},
		ended:   endedStreams{most: env.config.Limits.MaxStreams, at: map[endedStream]*list.Element{}},
		warned:  map[string]bool{}, done: make(chan struct{}),
	}
}

// sessionName is what sessions are matched by and called.
func sessionName(s lttnglive.Session) string { return s.Host + "/" + s.Name }

// Why a session is no longer read.
var (
	errStopping = errors.New("the receiver is shut down")
	errClosed   = errors.New("the session was closed")
	errGone     = errors.New("the relay daemon has no such session any more")
)

// badData is what could not be read.
type badData struct {
	what string
	err  error
}

func (e *badData) Error() string { return e.what + ": " + e.err.Error() }
func (e *badData) Unwrap() error { return e.err }

// run reads the session until it ends.
func (f *follower) run() {
	defer close(f.done)
	defer func() { f.account.close() }()
	defer f.health.Remove()
	cause := callevent.CauseEnded
	for {
		if f.account == nil {
			f.openAccount()
		}
		err := f.attach()
		if f.last == nil {
			f.flush()
		}
		switch {
		case errors.Is(err, errStopping) || f.env.isStopping():
			cause = callevent.CauseShutdown
			f.finish(cause)
			return
		case errors.Is(err, errClosed):
			f.over = true
			f.env.said(&f.env.lines.closed, f.logger, zap.InfoLevel, "The session was closed")
			f.finish(cause)
			return
		case errors.Is(err, errGone):
			f.env.said(&f.env.lines.gone, f.logger, zap.InfoLevel, "The session is gone from the relay daemon")
			f.finish(callevent.CauseDisconnected)
			return
		}
		if !f.isShed() {
			pause := f.backoff.Pause()
			f.failed(err, pause)
			f.save()
			if f.pause(pause) {
				continue
			}
		}
		if !f.env.isStopping() {
			f.shed(f.why())
			if f.env.pause(f.detachedPause()) {
				continue
			}
			f.openAccount() // what is left is nothing
		}
		f.finish(callevent.CauseShutdown)
		return
	}
}

// failed says why a session is not read for a while.
func (f *follower) failed(err error, pause time.Duration) {
	var bad *badData
	var refused *lttnglive.StatusError
	now := f.env.now()
	switch {
	case errors.As(err, &bad):
		f.env.telemetry.badData(bad.what)
		f.health.Failed(err)
		if since, say := f.lines.bad.Say(now); say {
			f.said = true
			f.logger.Error("The session is dropped for now: what came could not be read",
				zap.String("what", bad.what), zap.Error(bad.err), zap.Duration("again_in", pause), zap.Int("since_last", since))
		}
	case errors.As(err, &refused):
		f.health.Failed(err)
		if since, say := f.lines.refused.Say(now); say {
			f.said = true
			f.logger.Warn("The session cannot be attached: it is tried again", zap.Error(err), zap.Int("since_last", since))
		}
	default:
		f.env.telemetry.connectionFailed()
		if since, say := f.lines.disconnected.Say(now); say {
			f.said = true
			f.logger.Warn("The connection to the relay daemon failed: it is made again", zap.Error(err), zap.Int("since_last", since))
		}
	}
}

// finish hands on what is left of a session that is no longer read.
func (f *follower) finish(cause callevent.Cause) {
	f.handOnLast()
	for _, t := range f.traces {
		// What is stored is read on by the next collector. Without, what waits for
		// other streams is handed on now.
		if f.env.config.Storage == nil || cause != callevent.CauseShutdown {
			t.ending = cause
			t.endStreams()
			if err := t.run(); err != nil {
				f.logger.Error("The last events of a trace could not be read", zap.Error(err))
			}
		}
		t.endProcesses(cause)
	}
	f.logs.flush()
	f.saveNow()
	for _, t := range f.traces {
		t.drop(cause)
	}
	f.env.metrics.ended(f.state())
}

// flush hands on all that is packed.
func (f *follower) flush() {
	for _, t := range f.traces {
		t.flush()
	}
	f.logs.flush()
}

// handOn does what may have to wait for a pipeline. No stream can say anything meanwhile,
// so that time doesn't count for max_delay.
func (f *follower) handOn(do func()) {
	begin := f.env.now()
	do()
	f.held += f.env.now().Sub(begin)
}

// attend does what time asks for.
func (f *follower) attend() {
	now := f.env.now()
	for _, t := range f.traces {
		t.attend(now)
	}
	f.logs.attend(now)
	if now.Sub(f.attachedAt) >= f.env.config.Reconnect.MaxInterval {
		f.health.Up()
	}
	if now.Sub(f.saved) >= saveInterval {
		f.save()
	}
}

// save stores how far the session was handed on, where there is a storage.
func (f *follower) save() {
	if f.env.config.Storage != nil {
		f.flush()
		f.saveNow()
	}
}

func (f *follower) saveNow() {
	f.saved = f.env.now()
	for _, t := range f.traces {
		if t.merger != nil || len(t.record.Streams) > 0 {
			f.savePosition(t)
		}
	}
}

func (f *follower) savePosition(t *trace) {
	record := t.position()
	// At the very end of a shutdown there is still time for this.
	f.env.positions.put(context.WithoutCancel(f.env.ctx), t.key, &record)
}

// clock is the time as streams are waited for: it stands while the session is not
// read.
func (f *follower) clock() time.Duration { return f.env.now().Sub(f.began) - f.held }

// warnOnce logs a warning once for the session.
func (f *follower) warnOnce(what, message string, fields ...zap.Field) {
	if !f.warned[what] {
		f.warned[what] = true
		f.logger.Warn(message, fields...)
	}
}

// noteNoState says, once for the session, that nothing tells for certain when tracing is
// stopped.
func (f *follower) noteNoState() {
	const what = "no state"
	if !f.warned[what] {
		f.warned[what] = true
		f.logger.Info("Processes don't tell their state, so calls may be paired across lttng stop and start: record it with lttng enable-event --userspace 'lttng_ust_statedump:*'")
	}
}

// noteNames says, once for the session, that names had no room.
func (f *follower) noteNames(forgotten int) {
	const what = "names"
	if !f.warned[what] {
		f.warned[what] = true
		f.logger.Info("Names of functions and threads have no room: they are forgotten and come again, which costs time. Raise limits.max_names_bytes",
			zap.Int("forgotten", forgotten), zap.Int("max_names_bytes", f.env.config.Limits.MaxNamesBytes))
	}
}

// warnNoRoom says, once for the session, that objects have no room.
func (f *follower) warnNoRoom(err error) {
	f.warnOnce("objects", "An object has no room: functions in it go by their addresses", zap.Error(err))
}

func (f *follower) warnNoProcess(event string) {
	f.warnOnce("no process", "Call events don't say of which process they are, so they are counted and not paired: record it with lttng add-context --userspace --type=vpid --type=vtid --type=procname",
		zap.String("event", event))
}

func (f *follower) warnNoThread(event string) {
	f.warnOnce("no thread", "Call events don't say of which thread they are, so they are counted and not paired: record it with lttng add-context --userspace --type=vpid --type=vtid --type=procname",
		zap.String("event", event))
}

func (f *follower) warnNoKey(event, field string) {
	f.warnOnce("no key "+event, "Events of a call rule don't have the field that they are paired by, so they are counted and not paired: correct key_field",
		zap.String("event", event), zap.String("key_field", field))
}

// sessionState is what a session is like when metrics are collected.
type sessionState struct {
	resource                                 pcommon.Resource
	opened                                   time.Time
	streams, processes, packets, packetsLost int64
	bytes, events, discarded                 int64
	newest                                   int64
	over                                     bool
}

// state is for the goroutine of metrics, too.
func (f *follower) state() sessionState {
	o := origin{config: f.env.config, host: f.host, session: f.session}
	// Sessions of several users may have one name.
	o.id = streamID(fmt.Sprint(f.id, " ", f.host, "/", f.session), f.env.config.Endpoint, processKey{}, 0)
	return sessionState{
		resource: o.frozen(), opened: f.opened,
		streams: f.counts.streams.Load(), processes: f.counts.processes.Load(),
		packets: f.counts.packets.Load(), packetsLost: f.counts.packetsLost.Load(), bytes: f.counts.bytes.Load(),
		events: f.counts.events.Load(), discarded: f.counts.discarded.Load(), newest: f.counts.newest.Load(),
	}
}
