// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// attachment is a session attached on one connection. It receives metadata and packets, and passes them to the traces
// of the session's recording.
type attachment struct {
	env       *Environment
	recording *recording
	conn      Connection
	ctx       context.Context
	// backoff is reset when something arrives.
	backoff *backoff.Backoff
	// sources are the traces of the connection, by the relay daemon's ID. order contains them in the order of their
	// announcement.
	sources map[uint64]*source
	order   []*source
	// streams are requested in this order. sourceOf maps each to the source that announced it.
	streams  []*stream
	sourceOf map[*stream]*source
	// waiting is the number of streams that wait for the metadata of their traces.
	waiting int
	// silent is the number of streams without data in this round. silence is the time until which all of them have no
	// data, in Unix nanoseconds.
	silent  int
	silence int64
	// refused is the first stream of the round with a packet that did not fit.
	refused *stream
	// unread is set if streams received data since the last read.
	unread bool
	// missing are streams that were read before and were not announced again, although their trace was.
	missing []*stream
	// compared is set if all traces of the connection are known, and missing is complete.
	compared bool
}

// Reasons why a session is not read any more.
var (
	errStopping = errors.New("the receiver is shut down")
	errClosed   = errors.New("the session was closed")
	errGone     = errors.New("the relay daemon has no such session any more")
)

// protocolError returns bad data for an error that means that the relay daemon violates the protocol, and other
// errors unchanged.
func protocolError(err error) error {
	var protocol *lttnglive.ProtocolError
	if errors.As(err, &protocol) {
		return &badData{what: BadProtocol, err: err}
	}
	return err
}

func newAttachment(ctx context.Context, r *recording, conn Connection, b *backoff.Backoff) *attachment {
	return &attachment{
		env: r.env, recording: r, conn: conn, ctx: ctx, backoff: b, sources: map[uint64]*source{}, sourceOf: map[*stream]*source{},
	}
}

// read reads the session in these steps, until it cannot continue:
//
//  1. announce: announced streams wait until their metadata identifies their trace.
//  2. round: request the index of the next packet of each wanted stream (ask), and the packet if there is
//     room (fetch).
//  3. recording.read: read and deliver the events that are next in order of time.
//  4. After a round without news, pause.
//
// The error is the reason for the end.
func (a *attachment) read(announced []lttnglive.Stream) error {
	if err := a.announce(announced); err != nil {
		return a.end(err)
	}
	pause := a.env.Settings.MinPoll
	for {
		news, err := a.round()
		if err == nil {
			err = a.readEvents()
		}
		if err == nil {
			err = a.measure()
		}
		switch {
		case err != nil:
			return a.end(err)
		case a.env.IsStopping():
			return errStopping
		case news:
			a.backoff.Reset()
			pause = a.env.Settings.MinPoll
			continue
		case !a.recording.memory.pause(pause):
			return a.end(errStopping)
		}
		// Sessions with buffers for each process keep the shortest pause, because the data of a process that ends is
		// available for a moment only.
		if !a.recording.perProcess {
			pause = min(2*pause, a.env.Settings.MaxPoll)
		}
	}
}

// end returns the reason for the end of the connection. Traces with data that cannot be read are
// dropped until they are announced again.
func (a *attachment) end(err error) error {
	if a.recording.memory.isAsked() && !a.env.IsStopping() {
		return a.recording.memory.reason()
	}
	var bad *badData
	if errors.As(err, &bad) && bad.what != BadProtocol {
		for _, t := range a.recording.traces {
			t.drop(callevent.CauseBadData)
		}
	}
	if a.env.IsStopping() {
		return errStopping
	}
	return err
}

// detachTime is the maximum time of detaching.
const detachTime = time.Second

// detach detaches the session if it is not read for some time. The connection closes afterwards.
func (a *attachment) detach(err error) {
	if errors.Is(err, errStopping) || a.recording.memory.isAsked() {
		ctx, cancel := context.WithTimeout(a.ctx, detachTime)
		defer cancel()
		if err := a.conn.Detach(ctx); err != nil {
			a.recording.lines.logger.Debug("The session cannot be detached: closing the connection detaches it", zap.Error(err))
		}
	}
	for _, t := range a.recording.traces {
		for _, s := range t.streams {
			s.present = false
		}
	}
}

// measure measures the memory of the session, including the streams and the metadata of this connection.
func (a *attachment) measure() error {
	announced := 0
	for _, src := range a.order {
		announced += src.size()
	}
	a.recording.announced = announced
	return a.recording.measure()
}

// readEvents reads all events that are next in order of time.
func (a *attachment) readEvents() error {
	a.unread = false
	return a.recording.read()
}

// announce adds streams that the relay daemon announced.
func (a *attachment) announce(streams []lttnglive.Stream) error {
	if n, most := len(streams)+len(a.streams)+a.waiting+len(a.order), a.env.Settings.Limits.Streams; n > most {
		return &badData{what: BadProtocol, err: fmt.Errorf("expected at most %d streams of the session (limits.max_streams), got %d", most, n)}
	}
	for _, s := range streams {
		src := a.sources[s.TraceID]
		if src == nil {
			src = newSource(s)
			a.sources[s.TraceID] = src
			a.order = append(a.order, src)
		}
		if s.Metadata {
			src.metadata, src.hasMetadata = s.ID, true
			continue
		}
		if !a.recording.perProcess && strings.Contains("/"+s.Path+"/", "/pid/") {
			a.recording.perProcess = true
			a.recording.lines.warnPerProcess()
		}
		if src.trace == nil {
			src.waiting = append(src.waiting, s)
			a.waiting++
		} else if err := a.openStream(src, s); err != nil {
			return err
		}
	}
	if err := a.measure(); err != nil {
		return err
	}
	return a.readUnknownMetadata()
}

// readUnknownMetadata reads the metadata of sources with an unknown trace.
func (a *attachment) readUnknownMetadata() error {
	for _, src := range a.order {
		if src.trace == nil && src.hasMetadata {
			if err := a.readMetadata(src); err != nil {
				return err
			}
		}
	}
	return nil
}

// openStream adds a stream of a known trace to the requested ones. A stream has one ID at a time.
func (a *attachment) openStream(src *source, announced lttnglive.Stream) error {
	s := src.trace.streams[streamKey(announced)]
	if s != nil && s.present && !s.hungUp {
		return &badData{what: BadProtocol, err: fmt.Errorf("stream %s: expected one stream of that path and channel, got the IDs %d and %d", s.key, s.id, announced.ID)}
	}
	isAsked := s != nil && slices.Contains(a.streams, s) // it hung up in this round
	if key := streamKey(announced); !a.conn.Resume(announced.ID, src.trace.positionOf(key)) {
		a.recording.lines.warnOtherRecording(zap.String("stream", key))
		if len(src.trace.streams) == 0 {
			a.recording.forgetPosition(src.trace)
		}
		delete(src.trace.position.Streams, key)
	}
	s = src.trace.openStream(announced)
	a.sourceOf[s] = src
	if !isAsked {
		a.streams = append(a.streams, s)
	}
	return nil
}

// readMetadata reads all available metadata of a source.
func (a *attachment) readMetadata(src *source) error {
	r := a.recording
	for {
		reply, err := a.conn.Metadata(a.ctx, src.metadata, nil)
		if err != nil {
			return protocolError(err)
		}
		if reply.Status != lttnglive.MetadataOK {
			return a.identify(src)
		}
		r.counts.bytes.Add(int64(len(reply.Data)))
		r.env.Telemetry.Received(0, int64(len(reply.Data)))
		if err := r.memory.charge(src.cost(reply.Data)); err != nil {
			return err
		}
		if err = a.checkMetadata(src, len(reply.Data)); err == nil {
			r.memory.measured += len(reply.Data) // until it is measured
			err = src.append(reply.Data)
		}
		if err != nil {
			return badMetadata(src, err)
		}
		if len(reply.Data) == 0 {
			return a.identify(src)
		}
	}
}

func badMetadata(src *source, err error) error {
	return &badData{what: BadMetadata, err: fmt.Errorf("trace %s: %w", src.path, err)}
}

// identify finds the trace of a source, and checks the size of its metadata in memory.
func (a *attachment) identify(src *source) error {
	if err := a.recording.memory.charge(src.costOfReading()); err != nil {
		return err
	}
	if src.trace == nil && len(src.data) > 0 {
		if err := a.findTrace(src); err != nil {
			return err
		}
	}
	if err := a.checkMetadata(src, 0); err != nil {
		return badMetadata(src, err)
	}
	return a.measure()
}

// findTrace finds the trace of a source, if its metadata declares it, and opens the streams that wait
// for it.
func (a *attachment) findTrace(src *source) error {
	declared, err := src.readNew()
	if err != nil {
		return badMetadata(src, err)
	}
	if !declared {
		return nil
	}
	c, key := src.read, a.recording.key(src.read, src.path)
	t := a.recording.traces[key]
	switch {
	case t == nil:
		t = a.recording.newTrace(key)
		t.begin(c, src.data)
	case a.has(t):
		err = src.join(t)
	case t.continues(src.data):
		err = t.appendMetadata(src.data[t.metadata:])
	default:
		// It was dropped before, or its metadata has changed.
		t.drop(callevent.CauseDisconnected)
		t.begin(c, src.data)
	}
	if err != nil {
		return badMetadata(src, err)
	}
	src.isOf(t)
	a.conn.Identified(t.ctf)
	for _, s := range src.waiting {
		if err := a.openStream(src, s); err != nil {
			return err
		}
	}
	a.waiting -= len(src.waiting)
	src.waiting = nil
	return nil
}

// has reports whether the connection announced a trace.
func (a *attachment) has(t *trace) bool {
	return slices.ContainsFunc(a.order, func(src *source) bool { return src.trace == t })
}

// checkMetadata returns an error if so many bytes more of metadata are too many for the trace or for
// the session.
func (a *attachment) checkMetadata(src *source, more int) error {
	limits := &a.env.Settings.Limits
	if src.received+more > limits.MetadataBytes {
		return fmt.Errorf("expected at most %d bytes of metadata (limits.max_metadata_bytes), got more", limits.MetadataBytes)
	}
	all := more
	for _, t := range a.recording.traces {
		if t.ctf != nil {
			all += t.ctf.Size()
		}
	}
	for _, other := range a.order {
		all += len(other.data) + other.metadataSize()
	}
	if most := limits.SessionMetadataBytes; all > most {
		return fmt.Errorf("expected at most %d bytes of metadata of all %d traces of the session, with the classes made of it (limits.max_session_metadata_bytes), got more", most, len(a.order))
	}
	return nil
}

// round requests the next index of every wanted stream. It reports whether there was new data.
func (a *attachment) round() (news bool, err error) {
	var flags lttnglive.Flags
	asked := len(a.streams)
	a.silent, a.silence, a.refused = 0, math.MaxInt64, nil
	for _, s := range a.streams {
		if !a.wants(s) {
			continue
		}
		if a.env.IsStopping() {
			return false, errStopping
		}
		said, got, err := a.ask(s)
		if err != nil {
			return false, err
		}
		flags |= said
		news = news || got
	}
	if newest := &a.recording.counts.newest; asked > 0 && a.silent == asked {
		newest.Store(max(newest.Load(), a.silence))
	}
	a.removeHungUp()
	if err := a.readUnknownMetadata(); err != nil {
		return false, err
	}
	a.compareTraces()
	a.endMissing()
	// Relay daemons up to 2.13 set the flag only together with packets. While all streams are silent,
	// they do not announce a new process.
	if flags.Has(lttnglive.FlagNewStreams) || !news {
		announced, err := a.askNewStreams()
		return news || announced, err
	}
	return news, nil
}

// removeHungUp removes streams that hung up. The next round begins with the stream whose packet did not fit, so that
// each has its turn.
func (a *attachment) removeHungUp() {
	if at := slices.Index(a.streams, a.refused); at > 0 {
		a.streams = slices.Concat(a.streams[at:], a.streams[:at])
	}
	a.streams = slices.DeleteFunc(a.streams, func(s *stream) bool {
		if s.hungUp {
			delete(a.sourceOf, s)
		}
		return s.hungUp
	})
}

// wants reports whether the next index of a stream is requested: others may wait for it, or there is room to read
// ahead.
func (a *attachment) wants(s *stream) bool {
	return !s.hungUp && s.in.Wanted() && (s.in.IsEmpty() || !a.recording.buffers.isFull())
}

// ask requests the next index of a stream, and reports whether there was new data.
func (a *attachment) ask(s *stream) (flags lttnglive.Flags, news bool, err error) {
	if !s.hasPending {
		if s.pending, err = a.conn.NextIndex(a.ctx, s.id); err != nil {
			var loss *LossError
			if errors.As(err, &loss) {
				a.readLoss(s, loss)
				return 0, true, nil
			}
			return 0, false, a.endUnreadable(s, err)
		}
	}
	i := &s.pending
	if i.Flags.Has(lttnglive.FlagNewMetadata) {
		if err := a.readMetadata(a.sourceOf[s]); err != nil {
			return 0, false, err
		}
	}
	switch i.Status {
	case lttnglive.IndexOK:
		s.trace.reach(i)
		flags := i.Flags
		got, err := a.fetch(s)
		return flags, got, err
	case lttnglive.IndexInactive:
		s.in.Promise(i.StreamClass, i.TimestampEnd)
		a.unread = true
		a.countSilent(s, i)
	case lttnglive.IndexHangUp, lttnglive.IndexEnd:
		a.hangUp(s)
		return i.Flags, true, nil
	}
	s.current = true
	return i.Flags, false, nil
}

// readLoss counts lost packets, or marks the gap in the stream.
func (a *attachment) readLoss(s *stream, loss *LossError) {
	if loss.Older > 0 {
		a.recording.counts.packetsLost.Add(loss.Older)
		a.env.Telemetry.PacketsLost(loss.Older)
		return
	}
	s.in.MarkLoss(merge.Damaged)
	a.unread = true
}

// countSilent counts a stream that has nothing until a time.
func (a *attachment) countSilent(s *stream, i *lttnglive.Index) {
	for _, class := range s.trace.ctf.StreamClasses() {
		if class.ID == i.StreamClass && class.Clock != nil {
			a.silent++
			a.silence = min(a.silence, class.Clock.UnixNano(i.TimestampEnd))
		}
	}
}

// fetch requests the packet of the stream's index, and reports whether there was something.
func (a *attachment) fetch(s *stream) (bool, error) {
	i := &s.pending
	s.hasPending = true
	if a.isBefore(s, i) || slices.Contains(s.bad, timesOf(i)) {
		s.hasPending = false
		return true, nil
	}
	if readable, err := a.awaitDeclaration(s); !readable || err != nil {
		i.Flags = 0 // they were used
		return false, err
	}
	r, length := a.recording, i.ContentLength()
	if most := a.env.Settings.Limits.PacketBytes; length > uint64(most) {
		return false, &badData{what: BadPacket, err: fmt.Errorf("stream %s: expected a packet of at most %d bytes (limits.max_packet_bytes), got one of %d", s.key, most, length)}
	}
	if fits, passed, err := a.makeRoom(s, length); !fits || err != nil {
		if a.refused == nil {
			a.refused = s
		}
		i.Flags = 0 // they were used
		return passed, err
	}
	data := r.buffers.buffer(length)
	if err := r.memory.charge(cap(data)); err != nil {
		return false, err
	}
	reply, err := a.conn.Packet(a.ctx, s.id, i.Offset, length, data)
	if err != nil || reply.Status != lttnglive.PacketOK {
		r.buffers.release(data)
	}
	if err != nil {
		return false, a.endUnreadable(s, err)
	}
	switch reply.Status {
	case lttnglive.PacketOK:
		s.hasPending = false
		r.counts.packets.Add(1)
		r.counts.bytes.Add(int64(len(reply.Data)))
		a.env.Telemetry.Received(1, int64(len(reply.Data)))
		if s.trace.floor == 0 {
			s.trace.floor = i.TimestampBegin
		}
		s.appendPacket(reply.Data, i)
		a.unread = true
		return true, nil
	case lttnglive.PacketEnd:
		a.hangUp(s)
		return true, nil
	}
	return false, a.followFlags(s, reply.Flags)
}

// awaitDeclaration reports whether the pending packet of a stream can be read: the metadata declares its class, or did not do
// so for the longest delay of a stream. A relay daemon may send the first packet of a new process before the metadata that
// declares its class, and sets no flag when that arrives.
func (a *attachment) awaitDeclaration(s *stream) (readable bool, err error) {
	declared := func() bool {
		return slices.ContainsFunc(s.trace.ctf.StreamClasses(), func(c *ctf.StreamClass) bool { return c.ID == s.pending.StreamClass })
	}
	if !declared() {
		if err := a.readMetadata(a.sourceOf[s]); err != nil {
			return false, err
		}
	}
	now := a.env.Now()
	switch {
	case declared():
		s.undeclared = time.Time{}
		return true, nil
	case s.undeclared.IsZero():
		s.undeclared = now
	}
	return now.Sub(s.undeclared) >= a.env.Settings.MaxDelay, nil
}

// followFlags reads the metadata and the streams that a refused request for a packet announces.
func (a *attachment) followFlags(s *stream, flags lttnglive.Flags) error {
	if flags.Has(lttnglive.FlagNewMetadata) {
		if err := a.readMetadata(a.sourceOf[s]); err != nil {
			return err
		}
	}
	if flags.Has(lttnglive.FlagNewStreams) {
		_, err := a.askNewStreams()
		return err
	}
	return nil
}

// isBefore reports whether a packet is older than the first attachment of a session that is read from
// then on. After a reconnect the session is read from its beginning, without packets that were read.
func (a *attachment) isBefore(s *stream, i *lttnglive.Index) bool {
	return a.env.Settings.FromNow && s.trace.floor > 0 && !s.any && i.TimestampEnd < s.trace.floor
}

// makeRoom reports whether a packet of that size may be received now. All traces of the session together never hold
// more than the bound and one packet:
//
//  1. Receive a packet that fits, if necessary after reading events.
//  2. Beyond the bound, receive one packet: of a stream for which others wait, or of a trace without packets.
//     So some stream always makes progress.
//  3. Otherwise pass by a stream for which others wait: its trace can continue without it. If a trace holds
//     less than its share, it waits instead until others free memory.
//
// passed reports whether the stream was passed by.
func (a *attachment) makeRoom(s *stream, size uint64) (fits, passed bool, err error) {
	b, t := &a.recording.buffers, s.trace
	if b.fits(size) {
		return true, false, nil
	}
	if a.unread {
		if err := a.readEvents(); err != nil {
			return false, false, err
		}
	}
	if b.fits(size) || b.held <= b.most && (t.held == 0 || s.in.Awaited()) {
		return true, false, nil
	}
	passed = t.held >= b.held/len(a.recording.traces) && s.in.PassBy(merge.NoRoom)
	a.unread = a.unread || passed
	return false, passed, nil
}

// endUnreadable ends a stream that the relay daemon cannot read, as its reply says. It returns other errors.
func (a *attachment) endUnreadable(s *stream, err error) error {
	var status *lttnglive.StatusError
	if !errors.As(err, &status) {
		return protocolError(err)
	}
	a.recording.lines.warnUnreadable(s.key, err)
	s.in.MarkLoss(merge.Interrupted)
	a.hangUp(s)
	return nil
}

// hangUp ends a stream.
func (a *attachment) hangUp(s *stream) {
	s.hungUp, s.hasPending, a.unread = true, false, true
	s.in.End()
	if a.recording.perProcess && s.isCut() {
		a.env.Telemetry.StreamCut()
		a.recording.counts.packetsLost.Add(1)
		a.env.Telemetry.PacketsLost(1)
		a.recording.lines.warnStreamCut(s.key, s.trace.process())
	}
}

// askNewStreams requests streams that were not announced yet, and reports whether there are some.
func (a *attachment) askNewStreams() (bool, error) {
	ended := a.endedTraces()
	reply, err := a.conn.NewStreams(a.ctx)
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
	err = a.announce(reply.Streams)
	a.forgetTraces(ended)
	return len(reply.Streams) > 0, err
}

// endedTraces returns the traces whose streams have all ended and were read: those of one process, and those that are
// not on this connection.
func (a *attachment) endedTraces() []*trace {
	var ended []*trace
	for _, t := range a.recording.traces {
		if len(t.streams) > 0 {
			continue
		}
		if here := a.has(t); here && t.processes.IsOfOneProcess() && len(t.numbered) > 0 || !here && a.compared {
			ended = append(ended, t)
		}
	}
	return ended
}

// forgetTraces removes traces that had ended before the relay daemon announced its streams, and have no streams on
// this connection. A session with buffers for each process has a trace for each process that ever ran.
func (a *attachment) forgetTraces(ended []*trace) {
	for _, t := range ended {
		if len(t.streams) > 0 {
			continue
		}
		a.recording.forget(t)
		a.order = slices.DeleteFunc(a.order, func(src *source) bool {
			if src.trace != t {
				return false
			}
			delete(a.sources, src.id)
			return true
		})
	}
}

// compareTraces finds missing streams once all traces of the connection are known: those that were read before and
// were not announced. The lost data is unknown, and so is the end of the loss: it is at most the time of the
// connection.
func (a *attachment) compareTraces() {
	if a.compared || len(a.order) == 0 {
		return
	}
	for _, src := range a.order {
		if src.trace == nil {
			return
		}
	}
	a.compared = true
	for _, t := range a.recording.traces {
		for _, s := range t.streams {
			if s.present {
				continue
			}
			s.in.MarkLoss(merge.Interrupted)
			if a.has(t) {
				a.missing = append(a.missing, s)
			} else {
				s.in.End()
			}
		}
	}
}

// endMissing ends missing streams when all other streams of their trace have sent everything from before the
// connection. Until then calls are not paired. No stream waits for a missing one.
func (a *attachment) endMissing() {
	a.missing = slices.DeleteFunc(a.missing, func(s *stream) bool {
		if slices.ContainsFunc(a.streams, func(other *stream) bool { return other.trace == s.trace && !other.current }) {
			s.in.PassBy(merge.Interrupted)
			return false
		}
		if at := s.trace.reached; at.end > 0 {
			s.in.Promise(at.class, at.end+1)
		}
		s.in.End()
		a.unread = true
		return true
	})
}
