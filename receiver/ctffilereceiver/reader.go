// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/session"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/ctffilereceiver/internal/recorded"
)

// reader finds traces, and reads each with a session. Its own goroutine, run, does this. Others ask for states and
// progress.
type reader struct {
	config    *Config
	finder    *recorded.Finder
	settings  recorded.Settings
	env       *session.Environment
	telemetry *telemetry
	// stopCollector sends the signal that shuts the collector down.
	stopCollector func() error
	common        *common
	// countRead subtracts this receiver from those that still read.
	countRead func()
	// serving ends when the shutdown begins.
	serving context.Context
	// start starts a goroutine that the shutdown waits for.
	start func(func())
	// ended receives a value after the end of a session.
	ended chan struct{}
	lines readerLines
	// crowded is set after the warning that traces wait, until none waits.
	crowded bool

	mu sync.Mutex
	// traces are those that were found, in this order. dirs maps directories to them; nil: unreadable.
	traces []*readTrace
	dirs   map[string]*readTrace
	sum    summary
}

// common is shared by all receivers of a factory, and so of a process.
type common struct {
	// unread is the number of receivers with at_end: stop_collector that still read. They all end the same process: the
	// last one does.
	unread  atomic.Int32
	ballast ballast
}

// readerLines are the log lines that files can cause very often.
type readerLines struct {
	search, identity, failed logline.Seldom
	skipped                  [len(skippedLines)]logline.Seldom
}

// skippedLines are the log lines about data that is not read.
var skippedLines = [...]string{
	recorded.DamagedPacket:  "A packet is damaged and skipped",
	recorded.DamagedRest:    "A packet is damaged, and the rest of its file is skipped",
	recorded.UnreadableFile: "A file cannot be read, and is skipped",
	recorded.OlderPackets:   "A file appeared after later packets had been read: its packets are left out",
}

// readTrace is a trace with its session.
type readTrace struct {
	*recorded.Trace
	// session is nil while the trace is not read. wasRead is set after a session has ended.
	session *session.Session
	wasRead bool
}

// fileWords are the log lines about traces.
var fileWords = session.Words{
	Attached:     "Reading a trace",
	Again:        "Reading a trace again",
	Closed:       "A trace was read to its end",
	Gone:         "A trace is gone",
	Unreadable:   "A trace cannot be read",
	Refused:      "A trace cannot be opened",
	Disconnected: "The files of a trace cannot be read",
	Detached:     "A trace is closed for now: it holds more of the memory budget than it may. Open calls are not paired",
}

func newReader(config *Config, common *common) (*reader, error) {
	finder, err := config.finder()
	if err != nil {
		return nil, err
	}
	r := &reader{config: config, finder: finder, ended: make(chan struct{}, 1), dirs: map[string]*readTrace{}, stopCollector: terminate, common: common, countRead: func() {}}
	r.lines.failed.Most = session.SessionsLogged // each trace has its own reason
	r.settings = recorded.Settings{
		Once: config.Mode == ModeOnce, MaxDelay: config.MaxDelay, EndAfter: config.EndAfter,
		MaxPacketBytes: config.Limits.MaxPacketBytes, MaxMetadataBytes: config.Limits.MaxMetadataBytes, MaxStreams: config.Limits.MaxStreams,
		Now: func() time.Time { return r.env.Now() }, Skip: r.logSkipped,
	}
	return r, nil
}

// open sets the parts of a started receiver.
func (r *reader) open(env *session.Environment, counters *telemetry, run *receiverkit.Run) {
	r.env, r.telemetry, r.serving, r.start = env, counters, run.Serving, run.Go
	if r.config.AtEnd == AtEndStopCollector {
		r.common.unread.Add(1)
		r.countRead = sync.OnceFunc(func() { r.common.unread.Add(-1) })
	}
}

// run searches and reads until the shutdown begins, or until all is read.
func (r *reader) run() {
	defer r.countRead()
	r.env.Logger.Info("Looking for CTF traces", zap.Strings("include", r.config.Include), zap.String("mode", string(r.config.Mode)))
	r.sum.began = r.env.Now()
	report := time.NewTicker(progressInterval)
	defer report.Stop()
	if r.config.Mode == ModeOnce {
		defer r.common.ballast.hold(r.env.Memory)()
	}
	if found := r.search(); found == 0 && r.config.Mode == ModeWatch {
		r.logNoTrace()
	}
	for !r.env.IsStopping() {
		reading := r.readWaiting()
		if !reading && r.config.Mode == ModeOnce {
			r.finish()
			return
		}
		var poll <-chan time.Time
		var timer *time.Timer
		if r.config.Mode == ModeWatch {
			timer = time.NewTimer(r.config.PollInterval)
			poll = timer.C
		}
		select {
		case <-r.env.Serving.Done():
		case <-r.ended:
		case <-report.C:
			r.logProgress(reading)
		case <-poll:
			r.search()
			r.env.Shrink()
		}
		if timer != nil {
			timer.Stop()
		}
	}
}

// search finds directories of traces, and measures those that are known. It returns the number of directories.
func (r *reader) search() int {
	dirs, err := r.finder.Find(r.serving)
	if err != nil && !r.env.IsStopping() {
		r.logUnfound(err)
	}
	for _, dir := range dirs {
		if r.env.IsStopping() {
			return len(dirs)
		}
		t, known := r.traceOf(dir)
		// A rotation moves a directory and makes it again. If the session looked in between, the trace does not have it any more.
		if !known || t != nil && !t.Has(dir) {
			t = r.identify(dir)
		}
		if t == nil {
			continue
		}
		if err := t.Measure(dir); err != nil {
			r.logUnfound(err)
		}
	}
	r.forget(dirs)
	return len(dirs)
}

// logUnfound logs and notes that traces or files can be missing.
func (r *reader) logUnfound(err error) {
	r.logSeldom(&r.lines.search, "The search for traces is not complete", zap.Error(err))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sum.unfound = true
}

func (r *reader) traceOf(dir string) (t *readTrace, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, known = r.dirs[dir]
	return t, known
}

// identify returns the trace of a new directory; nil: its metadata cannot be read, or not yet.
func (r *reader) identify(dir string) *readTrace {
	identity, err := recorded.Identify(r.serving, dir, r.config.Limits.MaxMetadataBytes, !r.settings.Once)
	if err != nil && r.env.IsStopping() {
		return nil
	}
	if err != nil {
		// While files grow, the metadata may not be written yet.
		if r.config.Mode == ModeOnce {
			r.failed(dir, err)
		} else if since, due := r.lines.identity.Count(r.env.Now()); due {
			r.env.Logger.Info("A directory has no readable metadata yet. LTTng writes metadata at lttng stop or rotate",
				zap.String("trace", dir), zap.String("reason", err.Error()), zap.Int("times_since_last_line", since))
		}
		return nil
	}
	r.mu.Lock()
	i := slices.IndexFunc(r.traces, func(t *readTrace) bool { return t.Position == identity.Position })
	hasKey := slices.ContainsFunc(r.traces, func(t *readTrace) bool { return t.Key == identity.Key })
	r.mu.Unlock()
	if i >= 0 {
		same, err := r.traces[i].Join(r.serving, dir)
		if err != nil {
			r.failed(dir, err)
			return nil
		}
		if same {
			r.register(dir, r.traces[i], false)
			return r.traces[i]
		}
		identity = identity.Below(dir)
	} else if hasKey {
		identity = identity.Another()
	}
	t := &readTrace{Trace: recorded.NewTrace(&r.settings, identity, dir)}
	r.register(dir, t, true)
	return t
}

// register adds a directory, and the trace if it is new.
func (r *reader) register(dir string, t *readTrace, isNew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dirs[dir] = t
	if isNew {
		r.traces = append(r.traces, t)
	}
}

// failed counts and logs a directory that cannot be read.
func (r *reader) failed(dir string, err error) {
	r.telemetry.TraceFailed()
	r.env.Telemetry.BadData(session.BadMetadata)
	r.logSeldom(&r.lines.failed, fileWords.Unreadable, zap.String("trace", dir), zap.Error(err))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dirs[dir] = nil
	r.sum.failed++
}

// forget forgets directories that no longer exist, and traces without directories.
func (r *reader) forget(existing []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	used := map[*readTrace]bool{}
	for dir, t := range r.dirs {
		if _, exists := slices.BinarySearch(existing, dir); exists || t != nil && t.session != nil {
			used[t] = true
		} else {
			delete(r.dirs, dir)
		}
	}
	r.traces = slices.DeleteFunc(r.traces, func(t *readTrace) bool { return !used[t] })
}

// readWaiting begins to read traces that are not read, within the limit, and reports whether any is read.
func (r *reader) readWaiting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	most := r.config.Limits.MaxOpenTraces
	if r.config.Mode == ModeOnce {
		most = min(most, runtime.GOMAXPROCS(0)) // more at the same time need memory, and no less time
	}
	reading := 0
	for _, t := range r.traces {
		if t.session != nil {
			reading++
		}
	}
	waiting := 0
	for _, t := range r.traces {
		if t.session != nil || t.wasRead && (r.config.Mode == ModeOnce || !t.HasMore()) {
			continue
		}
		if reading >= most {
			waiting++
			continue
		}
		r.read(t)
		reading++
	}
	r.warnWaiting(waiting)
	return reading > 0
}

// warnWaiting warns that traces wait until others end. In the mode once all of them end. The caller holds mu.
func (r *reader) warnWaiting(traces int) {
	if traces > 0 && !r.crowded && r.config.Mode == ModeWatch {
		r.env.Logger.Warn("Traces wait until others end: raise limits.max_open_traces",
			zap.Int("waiting", traces), zap.Int("max_open_traces", r.config.Limits.MaxOpenTraces))
	}
	r.crowded = traces > 0
}

// read begins to read a trace. The caller holds mu.
func (r *reader) read(t *readTrace) {
	t.session = session.NewOf(r.env, session.Subject{
		Session: lttnglive.Session{ID: t.ID, Host: t.Host, Name: t.Identity.Session},
		Kind:    "trace", Name: t.Dir(), Key: t.Key, Position: t.Position, Recording: t.Recording, Words: &fileWords, Attach: t.Attach, Once: r.settings.Once, Damaged: t.Damaged,
	})
	s := t.session
	r.start(func() {
		s.Run()
		r.closed(t, s)
	})
}

// closed notes the end of a session.
func (r *reader) closed(t *readTrace, s *session.Session) {
	state := s.State()
	t.Release()
	r.mu.Lock()
	t.session, t.wasRead = nil, true // a session holds memory after its end
	r.sum.events += state.Events
	r.sum.packets += state.Packets
	switch {
	case s.WasClosed():
		r.sum.read++
		r.telemetry.TraceRead()
	case s.Err() != nil:
		r.sum.failed++
		r.telemetry.TraceFailed()
	}
	r.mu.Unlock()
	select {
	case r.ended <- struct{}{}:
	default: // run looks at all traces
	}
}

// states returns the states of traces that are read.
func (r *reader) states() (states []session.State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.traces {
		if t.session != nil {
			states = append(states, t.session.State())
		}
	}
	return states
}

// finish reports that all is read, and shuts the collector down if it is configured to.
func (r *reader) finish() {
	r.logSummary()
	if r.config.AtEnd != AtEndStopCollector {
		return
	}
	if r.env.CloseLogs != nil {
		r.env.CloseLogs() // a shutdown would wait for them only for shutdown_timeout
	}
	r.countRead()
	if err := r.stop(); err != nil {
		r.env.Logger.Error("The collector cannot be shut down after the last trace: stop it", zap.Error(err))
	}
}

const (
	// signalInterval is the pause before the signal is sent again, and maxSignals bounds the signals.
	signalInterval = 100 * time.Millisecond
	maxSignals     = 600
)

// errNoShutdown: the collector does not react to the signal.
var errNoShutdown = fmt.Errorf("expected a shutdown after %d signals, got none", maxSignals)

// stop shuts the collector down, when no other receiver prevents it. The collector listens to signals only after the start of all components. An earlier
// signal has no effect, because stop listens, too. So stop sends it again until the shutdown begins.
func (r *reader) stop() error {
	arrived := make(chan os.Signal, 1)
	signal.Notify(arrived, syscall.SIGTERM)
	defer signal.Stop(arrived)
	again := time.NewTicker(signalInterval)
	defer again.Stop()
	for sent := 0; sent < maxSignals; {
		if r.common.unread.Load() == 0 {
			if sent++; sent == 1 {
				r.env.Logger.Info("The collector shuts down, because all traces are read", zap.String("at_end", string(AtEndStopCollector)))
			}
			if err := r.stopCollector(); err != nil {
				return err
			}
			select {
			case <-arrived: // after signal.Stop it could kill the process
			case <-again.C:
			}
		}
		select {
		case <-r.env.Serving.Done():
			return nil
		case <-again.C:
		}
	}
	return errNoShutdown
}

// terminate sends this process the signal with which systems stop a collector. The status of a fatal error would end
// it too. But the log would have an error, and a second such status blocks the shutdown of the collector.
func terminate() error {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	return self.Signal(syscall.SIGTERM)
}

// logSkipped logs and counts data that is not read.
func (r *reader) logSkipped(what recorded.Skipped, err error) {
	r.mu.Lock()
	if what == recorded.OlderPackets {
		r.sum.late++ // the session counts the packets
	} else {
		r.sum.damaged++
		r.telemetry.PacketDamaged()
	}
	r.mu.Unlock()
	r.logSeldom(&r.lines.skipped[what], skippedLines[what], zap.Error(err))
}

func (r *reader) logSeldom(line *logline.Seldom, message string, fields ...zap.Field) {
	if since, due := line.Count(r.env.Now()); due {
		r.env.Logger.Error(message, append(fields, zap.Int("times_since_last_line", since))...)
	}
}
