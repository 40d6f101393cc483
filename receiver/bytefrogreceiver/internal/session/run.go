// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/componentkit/socket"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/pace"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/stream"
)

// run has the parts of one run of one agent, which its goroutines share.
type run struct {
	env *Environment
	Options
	logger *zap.Logger

	life    *lifetime
	stream  *stream.Stream
	control *control
	breaks  *breaks
	agent   *agent
	classes classes
	heldUp  holdUp
	batches *batches
	data    *dataConnections
	pace    *pace.Group
	traffic traffic
	// news wakes the goroutine of live.
	news chan struct{}
	// ctx ends when undelivered data of the run is dropped: when giveUp is called with the reason, or
	// when the time of the shutdown is over.
	ctx    context.Context
	giveUp context.CancelCauseFunc
}

// runBytes is the approximate memory of a run without its data: its structures, its resource, and
// the stacks of its goroutines.
const runBytes = 24 << 10

func newRun(env *Environment, options Options) *run {
	r := &run{
		env: env, Options: options,
		logger:  env.Receiver.Logger.With(zap.Uint8("run", options.ID), zap.String("peer", options.Control.Conn().RemoteAddr().String())),
		life:    newLifetime(env.Receiver.Now()),
		control: newControl(options.Control),
		heldUp:  holdUp{nameWait: env.Settings.NameWait},
		data:    newDataConnections(int(env.Settings.Agent.DataConnections)),
		news:    make(chan struct{}, 1),
	}
	r.ctx, r.giveUp = context.WithCancelCause(env.Receiver.Delivering)
	r.Memory.Resize(0, runBytes)
	r.stream = r.newStream()
	r.breaks = &breaks{stream: r.stream, telemetry: env.Telemetry, added: r.wake}
	r.pace = pace.NewGroup(r.stream, env.Settings.MaxConnectionLead, int(env.Settings.Agent.BufferMemoryBudget))
	r.agent = newAgent(env, r.logger, r.control, r.life, r.breaks)
	r.batches = newBatches(r.ctx, env, r.logger, r.Resource, &r.heldUp, &r.classes, overload{
		memory: r.Memory, refused: r.agent.suspendForOverload, drained: r.wake,
	})
	return r
}

// newStream returns the call stream of the run.
func (r *run) newStream() *stream.Stream {
	settings, counters := &r.env.Settings, r.env.Telemetry
	var reuse sync.Once
	return stream.New(stream.Settings{
		ID: r.Stream, TextKey: settings.TextKey, Memory: r.Memory, Now: r.env.Receiver.Now,
		MaxBatchBytes: settings.Batches.Batch.MaxBytes, MaxBatchDelay: settings.Batches.Batch.MaxDelay, NameWait: settings.NameWait,
		Counts: stream.Counts{
			NamesLate: counters.NamesLate, NamesUnknown: counters.NamesUnknown, NameRemapped: counters.NameRemapped,
			ThreadReused: func() {
				counters.ThreadReused()
				reuse.Do(func() {
					r.logger.Warn("the program has had more than 65,536 threads, so its agent reuses thread IDs; " +
						"calls of threads that share an ID are reported without their callers")
				})
			},
			BatchDropped: counters.BatchInvalid,
		},
	})
}

// wake wakes the goroutine of live.
func (r *run) wake() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// agentError ends the run of an agent that has reported an error: the agent closes its connections.
func (r *run) agentError(m bytefrog.ErrorMessage) {
	r.Records.Error(m)
	r.life.leave(failedInAgent(m.Text))
}

// badData ends the run because of unreadable data.
func (r *run) badData(connection string, err error) {
	r.env.Telemetry.BadData(connection)
	r.life.leave(badData(connection, err))
}

// warnIfUntraced warns if no class of the program is traced. A guard that continues a run sends the names
// of its methods, but no reports of classes that were loaded before.
func (r *run) warnIfUntraced() {
	if r.traffic.bytes.Load() == 0 {
		r.classes.matching.log(r.logger, &r.env.Settings.Agent)
	}
}

// traffic counts the data of a run.
type traffic struct {
	bytes atomic.Uint64
	// last is when data arrived last, as time since the run was opened.
	last atomic.Int64
}

// countData counts data that arrived on a data connection.
func (r *run) countData(events, bytes int) {
	r.traffic.bytes.Add(uint64(bytes))
	r.env.Telemetry.Received(int64(events), int64(bytes))
	r.traffic.last.Store(int64(r.env.Receiver.Now().Sub(r.life.opened)))
	r.data.changed.Notify()
}

// lastData returns when data arrived last.
func (r *run) lastData() time.Time { return r.life.opened.Add(time.Duration(r.traffic.last.Load())) }

func (r *run) state() State {
	heard := r.life.opened.Add(time.Duration(r.control.heard.Load()))
	if data := r.lastData(); data.After(heard) {
		heard = data
	}
	peer := r.control.in.Conn()
	s := State{
		ID: r.ID, Stream: r.Stream, Peer: peer.RemoteAddr().String(), Host: socket.PeerHost(peer), Version: r.Version,
		Resource: r.Resource, Opened: r.life.opened, LastHeard: heard,
		Mode: r.control.lastMode(), SendBuffers: int64(r.control.sendBuffers.Load()), Heartbeats: r.control.heartbeats.Load(),
		Agent: r.agent.Status(), Connections: int64(r.data.reading()),
		Events: r.stream.Received(), Next: r.stream.Next(), Missing: r.stream.Missing(), Bytes: r.traffic.bytes.Load(),
		Proven: r.control.heartbeats.Load() > 0 || isClosed(r.data.joined), Leaving: r.life.isLeaving(),
		Waiting: r.batches.waiting(),
	}
	if r.batches.isOpen() {
		s.Calls, s.Holds = r.batches.Calls(), r.batches.Holds()
	}
	for cause := range r.breaks.counts {
		s.Breaks[cause] = r.breaks.counts[cause].Load()
	}
	return s
}
