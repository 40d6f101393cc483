// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/receiverkit/eventswitch"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/pace"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/runmemory"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/stream"
)

// run is one run of one agent: from its hello until its ID is given back.
//
// Its goroutines: one reads the control connection (controlreader.go). One for each data connection
// gives its batches to the pipeline, while a coroutine reads it and packs (data.go). One does the
// rest (life.go), at last the farewell (farewell.go).
type run struct {
	env      *environment
	id       runID
	streamID callevent.StreamID
	version  uint8
	peer     string
	resource pcommon.Resource
	logger   *zap.Logger

	memory   *runmemory.Memory
	stream   *stream.Stream
	handover *handover.Batches // nil when no pipeline takes traces
	logs     runLogs
	failed   failedClasses
	matching matching
	control  *control
	data     dataConnections
	pace     *pace.Group
	heldUp   holdUp
	reuse    sync.Once

	agent       *hq.Agent
	suspensions suspensions

	// started is closed when the agent was told to start.
	started chan struct{}
	// leaving is closed when ending was set, once.
	leaving chan struct{}
	ending  ending
	// over is closed when its ID was given back.
	over chan struct{}
	// deciding is held while the agent is configured and started, and while it is
	// decided to leave it: one that is left before is turned away.
	deciding sync.Mutex
	// news wakes live.
	news chan struct{}
	// ctx is cancelled by giveUp, with the reason, when what the run has to hand on yet
	// is dropped: at the latest when the time of the shutdown is over.
	ctx    context.Context
	giveUp context.CancelCauseFunc

	bytes  atomic.Uint64
	breaks [callevent.CauseCount]atomic.Uint64
	// active is when data came last, as time since opened.
	opened time.Time
	active atomic.Int64
}

// newRun makes the run of an agent that has said hello on a control connection.
func newRun(env *environment, id runID, version uint8, in *connreader.Reader) (*run, error) {
	streamID, err := env.newStreamID()
	if err != nil {
		return nil, err
	}
	resource := newResource(env.config, streamID)
	now := env.Now()
	r := &run{
		env: env, id: id, streamID: streamID, version: version, resource: resource,
		peer:    in.Conn().RemoteAddr().String(),
		control: newControl(in),
		started: make(chan struct{}),
		leaving: make(chan struct{}),
		over:    make(chan struct{}),
		news:    make(chan struct{}, 1),
		opened:  now,
	}
	r.logger = env.Logger.With(zap.Uint8("run", uint8(id)), zap.String("peer", r.peer))
	r.ctx, r.giveUp = context.WithCancelCause(env.run.Delivering)
	r.memory = newRunMemory(env.run.Memory, env.config.Limits.MaxRunMemory)
	r.memory.Resize(0, runBytes)
	r.stream = r.newStream()
	r.pace = pace.NewGroup(r.stream, env.config.Limits.MaxConnectionLead, env.config.Agent.BufferMemory)
	r.control.in.OnWait(r.control.idle.Notify)
	r.data.init(env.config.Agent.DataConnections)
	r.agent = r.newAgent()
	r.logs = runLogs{sink: env.logs, off: eventswitch.Off(env.config.Events), timeOf: r.stream.Time, origin: &origin{run: id, resource: resource}, now: env.Now}
	r.handover = r.newHandover()
	return r, nil
}

// newStream makes the call stream of the run.
func (r *run) newStream() *stream.Stream {
	config, counters := r.env.config, r.env.telemetry
	return stream.New(stream.Settings{
		ID: r.streamID, TextKey: attributeSignature, Memory: r.memory, Now: r.env.Now,
		MaxBatchBytes: config.Batch.MaxBytes, MaxBatchDelay: config.Batch.MaxDelay, NameWait: config.NameWait,
		Counts: stream.Counts{
			NamesLate: counters.namesLate, NamesUnknown: counters.namesUnknown, NameRemapped: counters.nameRemapped,
			ThreadReused: r.threadReused,
			BatchDropped: func(events int) { counters.batchDropped(events, droppedInvalid) },
		},
	})
}

// threadReused counts a thread that got the ID of another thread, and logs the first.
func (r *run) threadReused() {
	r.env.telemetry.threadReused()
	r.reuse.Do(func() {
		r.logger.Warn("the program has had more than 65,536 threads, so its agent gives their IDs to new ones; " +
			"calls of threads that share an ID are reported without their callers")
	})
}

// start configures and starts the agent, unless it is being left already: isStarted
// says whether it did.
func (r *run) start() error {
	started, err := r.tellToStart()
	if started {
		r.logger.Info("An agent was started", zap.Uint8("protocol", r.version), zap.Stringer("stream", r.streamID))
		r.logs.started(r.version, r.control.in.Conn().RemoteAddr())
	}
	return err
}

// tellToStart sends what start is about, and reports whether it did.
func (r *run) tellToStart() (bool, error) {
	configuration, err := r.env.config.Agent.forRun(r.id).Message(r.version)
	if err != nil {
		return false, err
	}
	r.deciding.Lock()
	defer r.deciding.Unlock()
	if r.isLeaving() {
		return false, nil
	}
	if err := r.control.send(configuration); err != nil {
		return false, err
	}
	r.stream.StartClock(r.env.Now())
	if err := r.control.send(bytefrog.Command{Of: bytefrog.TypeStart}); err != nil {
		return false, err
	}
	close(r.started)
	return true, nil
}

// isStarted reports whether the agent was told to start.
func (r *run) isStarted() bool { return isClosed(r.started) }

// isProven reports whether its agent has sent a heartbeat or opened a data connection.
func (r *run) isProven() bool { return r.control.heartbeats.Load() > 0 || isClosed(r.data.joined) }

// isLeaving reports whether the end of the run was decided.
func (r *run) isLeaving() bool { return isClosed(r.leaving) }

// leave decides that the run ends. Only the first decision counts; live carries it out. It returns
// immediately, or as soon as the agent was sent start. An agent that is left before then is
// turned away by the goroutine that would have started it.
func (r *run) leave(e ending) {
	r.deciding.Lock()
	defer r.deciding.Unlock()
	if r.isLeaving() {
		return
	}
	r.ending = e
	close(r.leaving)
}

// wake wakes live.
func (r *run) wake() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// breakAt adds a break, or the end, to the run.
func (r *run) breakAt(barrier callevent.Barrier) {
	dropped, known := r.stream.AddBarrier(barrier)
	r.env.telemetry.barriersDropped(int64(dropped))
	if known || barrier.Kind == callevent.BarrierEnd {
		return
	}
	r.breaks[barrier.Cause].Add(1)
	r.env.telemetry.brokeOff(barrier.Cause)
	r.wake()
}

// agentError ends the run of an agent that has reported an error: it closes its connections.
func (r *run) agentError(m bytefrog.ErrorMessage) {
	r.logs.agentError(m)
	r.leave(failedInAgent(m.Text))
}

// countData counts what came on a data connection.
func (r *run) countData(events, bytes int) {
	r.bytes.Add(uint64(bytes))
	r.env.telemetry.received(int64(events), int64(bytes))
	r.active.Store(int64(r.env.Now().Sub(r.opened)))
	r.data.changed.Notify()
}

// lastActive is when data came last.
func (r *run) lastActive() time.Time { return r.opened.Add(time.Duration(r.active.Load())) }

// runState is what is known of a run at a moment.
type runState struct {
	id          runID
	stream      callevent.StreamID
	peer        string
	version     uint8
	mode        bytefrog.Mode
	sendBuffers int64
	opened      time.Time
	resource    pcommon.Resource
	connections int64
	events      uint64
	bytes       uint64
	breaks      [callevent.CauseCount]uint64
	over        bool
}

func (r *run) state() runState {
	s := runState{
		id: r.id, stream: r.streamID, peer: r.peer, version: r.version,
		mode: r.control.lastMode(), sendBuffers: int64(r.control.sendBuffers.Load()),
		opened: r.opened, resource: r.resource, connections: int64(r.data.reading()),
		events: r.stream.Received(), bytes: r.bytes.Load(),
	}
	for cause := range r.breaks {
		s.breaks[cause] = r.breaks[cause].Load()
	}
	return s
}
