// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// read asks all streams in turn, until the session can't be read any longer; the error
// says why.
func (a *attachment) read(streams []lttnglive.Stream) error {
	if err := a.tell(streams); err != nil {
		return a.failed(err)
	}
	idle := a.f.env.config.Poll.MinInterval
	for {
		news, err := a.round()
		if err == nil {
			err = a.work()
		}
		if err == nil {
			err = a.measure()
		}
		if err != nil {
			return a.failed(err)
		}
		if a.f.env.isStopping() {
			return errStopping
		}
		if news {
			a.f.backoff.Reset()
			idle = a.f.env.config.Poll.MinInterval
			continue
		}
		if !a.f.pause(idle) {
			return a.failed(errStopping)
		}
		idle = a.nextPause(idle)
	}
}

// nextPause is the pause after one that nothing came in. Buffers for each process are
// asked for as often as ever: what a process leaves behind can be had for a moment
// only.
func (a *attachment) nextPause(idle time.Duration) time.Duration {
	if a.f.perProcess {
		return a.f.env.config.Poll.MinInterval
	}
	return min(2*idle, a.f.env.config.Poll.MaxInterval)
}

// failed says what an error means for the session: a trace that couldn't be read is
// given up until it comes again.
func (a *attachment) failed(err error) error {
	if a.f.isShed() && !a.f.env.isStopping() {
		return a.f.why()
	}
	var bad *badData
	if errors.As(err, &bad) && bad.what != badProtocol {
		for _, t := range a.f.traces {
			t.drop(callevent.CauseBadData)
		}
	}
	if a.f.env.isStopping() {
		return errStopping
	}
	return err
}

// measure counts what the session holds, with what is known of its traces on this
// connection.
func (a *attachment) measure() error {
	listed := 0
	for _, src := range a.order {
		listed += bytesOfStream + len(src.path) + cap(src.data)
		if src.read != nil {
			listed += src.read.Size()
		}
		for i := range src.waiting {
			listed += bytesOfStream + len(src.waiting[i].Path) + len(src.waiting[i].Channel)
		}
	}
	a.f.listed = listed
	return a.f.measure()
}

// work hands on what is known to be next, and what time asks for.
func (a *attachment) work() (err error) {
	a.unread = false
	a.f.handOn(func() {
		err = a.run()
		a.f.attend()
	})
	return err
}

// run hands on all events that are known to be next.
func (a *attachment) run() error {
	for _, t := range a.f.traces {
		if err := t.run(); err != nil {
			return &badData{what: badPacket, err: fmt.Errorf("trace %s: %w", t.key, err)}
		}
	}
	return nil
}

// round asks every stream that is wanted for what is next. It reports whether there
// was something.
func (a *attachment) round() (news bool, err error) {
	var flags lttnglive.Flags
	asked := len(a.streams)
	a.silent, a.silence, a.refused = 0, math.MaxInt64, nil
	for _, s := range a.streams {
		if !a.wants(s) {
			continue
		}
		if a.f.env.isStopping() {
			return false, errStopping
		}
		said, got, err := a.ask(s)
		if err != nil {
			return false, err
		}
		flags |= said
		news = news || got
	}
	if asked > 0 && a.silent == asked {
		a.f.counts.newest.Store(max(a.f.counts.newest.Load(), a.silence))
	}
	a.askFirst(a.refused)
	a.streams = slices.DeleteFunc(a.streams, func(s *stream) bool { return s.hungUp })
	for _, src := range a.order {
		if src.trace == nil && src.hasMetadata {
			if err := a.readMetadata(src); err != nil {
				return false, err
			}
		}
	}
	a.compare()
	a.endGone()
	// Relay daemons up to 2.13 raise the flag beside packets only: where all streams are
	// silent, a new process is not announced.
	if flags.Has(lttnglive.FlagNewStreams) || !news {
		told, err := a.newStreams()
		return news || told, err
	}
	return news, nil
}

// ask asks one stream for what is next, and reports whether there was something.
func (a *attachment) ask(s *stream) (flags lttnglive.Flags, news bool, err error) {
	if !s.hasPending {
		if s.pending, err = a.relay.NextIndex(a.ctx, s.id); err != nil {
			return 0, false, a.streamFailed(s, err)
		}
	}
	i := &s.pending
	if i.Flags.Has(lttnglive.FlagNewMetadata) {
		if err := a.readMetadata(s.source); err != nil {
			return 0, false, err
		}
	}
	switch i.Status {
	case lttnglive.IndexOK:
		s.trace.reached(i)
		flags := i.Flags
		got, err := a.fetch(s)
		return flags, got, err
	case lttnglive.IndexInactive:
		s.in.Promise(i.StreamClass, i.TimestampEnd)
		a.unread = true
		a.quiet(s, i)
	case lttnglive.IndexHangUp, lttnglive.IndexEnd:
		a.hangUp(s)
		return i.Flags, true, nil
	}
	s.current = true
	return i.Flags, false, nil
}

// quiet notes up to when a stream has said that it has nothing.
func (a *attachment) quiet(s *stream, i *lttnglive.Index) {
	for _, class := range s.trace.ctf.StreamClasses() {
		if class.ID == i.StreamClass && class.Clock != nil {
			a.silent++
			a.silence = min(a.silence, class.Clock.UnixNano(i.TimestampEnd))
		}
	}
}

// fetch gets the packet that the stream's index announced.
func (a *attachment) fetch(s *stream) (bool, error) {
	i := &s.pending
	s.hasPending = true
	if a.isBefore(s, i) || slices.Contains(s.bad, timesOf(i)) {
		s.hasPending = false
		return true, nil
	}
	length := i.ContentLength()
	if length > uint64(a.limits.MaxPacketBytes) {
		return false, &badData{what: badPacket, err: fmt.Errorf("stream %s: expected a packet of at most %d bytes (limits.max_packet_bytes), got one of %d", s.key, a.limits.MaxPacketBytes, length)}
	}
	if there, passed, err := a.makeRoom(s, length); !there || err != nil {
		if a.refused == nil {
			a.refused = s
		}
		i.Flags = 0 // they are heeded once
		return passed, err
	}
	data := a.f.buffers.room(length)
	if err := a.f.charge(cap(data)); err != nil {
		return false, err
	}
	reply, err := a.relay.Packet(a.ctx, s.id, i.Offset, length, data)
	if err != nil || reply.Status != lttnglive.PacketOK {
		a.f.buffers.give(data)
	}
	if err != nil {
		return false, a.streamFailed(s, err)
	}
	switch reply.Status {
	case lttnglive.PacketOK:
		s.hasPending = false
		a.f.counts.packets.Add(1)
		a.f.counts.bytes.Add(int64(len(reply.Data)))
		a.f.env.telemetry.received(1, int64(len(reply.Data)))
		if s.trace.floor == 0 {
			s.trace.floor = i.TimestampBegin
		}
		s.give(reply.Data, i)
		a.unread = true
		return true, nil
	case lttnglive.PacketEnd:
		a.hangUp(s)
		return true, nil
	}
	if reply.Flags.Has(lttnglive.FlagNewMetadata) {
		if err := a.readMetadata(s.source); err != nil {
			return false, err
		}
	}
	if reply.Flags.Has(lttnglive.FlagNewStreams) {
		if _, err := a.newStreams(); err != nil {
			return false, err
		}
	}
	return false, nil
}

// isBefore reports whether a packet is from before the session was attached for the
// first time, where it is read from then on. After a reconnect it is read from its
// beginning, and what was handed on is passed over.
func (a *attachment) isBefore(s *stream, i *lttnglive.Index) bool {
	return a.f.env.config.Seek == SeekLast && s.trace.floor > 0 && !s.any && i.TimestampEnd < s.trace.floor
}

// streamFailed makes a hang-up of an answer that a stream can't be read, and leaves
// other errors.
func (a *attachment) streamFailed(s *stream, err error) error {
	var status *lttnglive.StatusError
	if !errors.As(err, &status) {
		return protocolError(err)
	}
	a.f.saidUnreadable(s, err)
	s.in.Lose(merge.Interrupted)
	a.hangUp(s)
	return nil
}

// hangUp ends a stream.
func (a *attachment) hangUp(s *stream) {
	s.hungUp, s.hasPending, a.unread = true, false, true
	s.in.End()
	if a.f.perProcess && s.isCut() {
		a.f.env.telemetry.streamCut()
		a.f.warnOnce("cut", "A stream ended before the relay daemon gave its last packet: what a process recorded at its end is missing. Nothing is lost with buffers for each user: lttng enable-channel --userspace --buffers-uid",
			zap.String("stream", s.key))
	}
}

// newStreams asks for streams that were not told yet, and reports whether there are
// some.
func (a *attachment) newStreams() (bool, error) {
	ended := a.endedTraces()
	reply, err := a.relay.NewStreams(a.ctx)
	if err != nil {
		var status *lttnglive.StatusError
		if errors.As(err, &status) {
			return false, errClosed
		}
		return false, protocolError(err)
	}
	if reply.Status == lttnglive.NewStreamsHangUp {
		return false, errClosed
	}
	err = a.tell(reply.Streams)
	a.forget(ended)
	return len(reply.Streams) > 0, err
}

// endedTraces are traces of one process each, and traces that are not of this connection,
// all streams of which have ended and were handed on.
func (a *attachment) endedTraces() []*trace {
	var ended []*trace
	for _, t := range a.f.traces {
		if len(t.streams) > 0 {
			continue
		}
		if here := t.on == a; here && t.hasPID && len(t.numbered) > 0 || !here && a.complete {
			ended = append(ended, t)
		}
	}
	return ended
}

// forget gives up traces that had ended before the relay daemon told all streams that
// it knew, and got none: a session with buffers for each process has as many traces as
// there were processes. How far they were handed on is kept, should they be told again
// on another connection.
func (a *attachment) forget(ended []*trace) {
	f := a.f
	for _, t := range ended {
		if len(t.streams) > 0 {
			continue
		}
		f.handOn(func() {
			f.logs.flush()
			t.endProcesses(callevent.CauseDisconnected)
			f.savePosition(t)
		})
		delete(f.traces, t.key)
		f.ended.forget(t)
		f.forgotten = true
		a.order = slices.DeleteFunc(a.order, func(src *source) bool {
			if src.trace != t {
				return false
			}
			delete(a.sources, src.id)
			return true
		})
	}
}
