// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// attachment is one connection of a follower on which the session is attached.
type attachment struct {
	f      *follower
	relay  *lttnglive.Attachment
	ctx    context.Context
	limits *LimitsConfig
	// sources are the traces of the connection, by the relay daemon's ID; order has
	// them in the order in which they were told.
	sources map[uint64]*source
	order   []*source
	streams []*stream
	// waiting is how many streams wait for the metadata of their traces.
	waiting int
	// silent is how many streams said in a round that they have nothing, and silence up
	// to when all of them do, in Unix nanoseconds.
	silent  int
	silence int64
	// refused is the first stream of a round that there was no room for.
	refused *stream
	// unread says that streams were told something since events were handed on.
	unread bool
	// gone are streams that were read before and are there no longer, of traces that others
	// are of.
	gone []*stream
	// complete says that the traces of the session were compared with those that were
	// read before.
	complete bool
}

// connect makes a connection to the relay daemon, whose replies have room. The connection is
// closed when ctx ends.
func (e *environment) connect(ctx context.Context, room func(bytes int) error) (net.Conn, *lttnglive.Viewer, error) {
	conn, err := e.dial(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to relay daemon %s: %w", e.config.Endpoint, err)
	}
	viewer, err := lttnglive.Connect(ctx, conn, lttnglive.ViewerOptions{
		Timeout: e.config.RequestTimeout, Room: room,
		Limits: lttnglive.Limits{
			Streams: e.config.Limits.MaxStreams, Packet: e.config.Limits.MaxPacketBytes, Metadata: e.config.Limits.MaxMetadataBytes,
		},
	})
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, viewer, nil
}

// attach makes a connection, attaches the session and reads it until it can't be read
// any longer; the error says why.
func (f *follower) attach() error {
	ctx := f.account.reading
	conn, viewer, err := f.env.connect(ctx, f.charge)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := f.find(ctx, viewer); err != nil {
		return protocolError(err)
	}
	seek := lttnglive.SeekBeginning
	if f.env.config.Seek == SeekLast && !f.hasRead() {
		seek = lttnglive.SeekLast
	}
	relay, streams, err := viewer.Attach(ctx, f.id, seek)
	if err != nil {
		var status *lttnglive.StatusError
		if errors.As(err, &status) && status.Status == lttnglive.AttachUnknown {
			return errGone
		}
		return protocolError(err)
	}
	f.begun(viewer)
	defer f.env.telemetry.sessions(-1)
	f.held += f.env.now().Sub(f.stopped)
	defer func() { f.stopped = f.env.now() }()
	a := &attachment{f: f, relay: relay, ctx: ctx, limits: &f.env.config.Limits, sources: map[uint64]*source{}}
	f.attachedAt = f.env.now()
	err = a.read(streams)
	if f.isShed() {
		f.giveUp()
	}
	a.leave(err)
	return err
}

// begun says that the session is attached. Of its streams not all are told yet.
func (f *follower) begun(viewer *lttnglive.Viewer) {
	f.env.telemetry.sessions(1)
	f.lines.attached()
	version := zap.Stringer("relay_version", viewer.RelayVersion())
	switch again := "The session is attached again"; {
	case !f.attached:
		f.env.said(&f.env.lines.attached, f.logger, zap.InfoLevel, "The session is attached", version)
	case f.said:
		f.logger.Info(again, version)
	default:
		f.logger.Debug(again, version)
	}
	f.attached, f.said = true, false
}

// find finds the session on a new connection: its ID holds as long as the relay daemon
// runs.
func (f *follower) find(ctx context.Context, viewer *lttnglive.Viewer) error {
	sessions, err := viewer.Sessions(ctx)
	if err != nil {
		return err
	}
	for _, s := range sessions {
		if s.ID == f.id && s.Host == f.host && s.Name == f.session {
			return nil
		}
	}
	return errGone
}

// hasRead reports whether packets of the session were read, so that it has to go on
// from there.
func (f *follower) hasRead() bool {
	for _, t := range f.traces {
		if t.floor > 0 || len(t.record.Streams) > 0 {
			return true
		}
	}
	return f.forgotten
}

// protocolError makes bad data of an error that says that the relay daemon doesn't
// keep to the protocol.
func protocolError(err error) error {
	var protocol *lttnglive.ProtocolError
	if errors.As(err, &protocol) {
		return &badData{what: badProtocol, err: err}
	}
	return err
}

// detachTime is how long detaching may take.
const detachTime = time.Second

// leave detaches the session where that is worth it, and gives up traces that could
// not be read.
func (a *attachment) leave(err error) {
	if errors.Is(err, errStopping) || a.f.isShed() {
		ctx, cancel := context.WithTimeout(a.ctx, detachTime)
		defer cancel()
		if err := a.relay.Detach(ctx); err != nil {
			a.f.logger.Debug("The session could not be detached: closing the connection does it", zap.Error(err))
		}
	}
	for _, t := range a.f.traces {
		for _, s := range t.streams {
			s.present = false
		}
	}
}

// tell takes streams that the relay daemon has told of.
func (a *attachment) tell(streams []lttnglive.Stream) error {
	if n := len(streams) + len(a.streams) + a.waiting + len(a.order); n > a.limits.MaxStreams {
		return &badData{what: badProtocol, err: fmt.Errorf("expected at most %d streams of the session (limits.max_streams), got %d", a.limits.MaxStreams, n)}
	}
	for _, s := range streams {
		src := a.sources[s.TraceID]
		if src == nil {
			src = &source{id: s.TraceID, path: s.Path, digest: sha256.New()}
			a.sources[s.TraceID] = src
			a.order = append(a.order, src)
		}
		if s.Metadata {
			src.metadata, src.hasMetadata = s.ID, true
			continue
		}
		a.noteBuffers(s.Path)
		if src.trace == nil {
			src.waiting = append(src.waiting, s)
			a.waiting++
		} else if err := a.open(src, s); err != nil {
			return err
		}
	}
	if err := a.measure(); err != nil {
		return err
	}
	for _, src := range a.order {
		if src.trace == nil && src.hasMetadata {
			if err := a.readMetadata(src); err != nil {
				return err
			}
		}
	}
	return nil
}

// open adds a stream of a trace that is known to those that are asked. It has one ID at a
// time.
func (a *attachment) open(src *source, told lttnglive.Stream) error {
	s := src.trace.streams[streamKey(told)]
	if s != nil && s.present && !s.hungUp {
		return &badData{what: badProtocol, err: fmt.Errorf("stream %s: expected one stream of that path and channel, got the IDs %d and %d", s.key, s.id, told.ID)}
	}
	there := s != nil && slices.Contains(a.streams, s) // it hung up in this round
	s = src.trace.open(told)
	s.source = src
	if !there {
		a.streams = append(a.streams, s)
	}
	return nil
}

// noteBuffers notices a session with buffers for each process, of which relay daemons
// up to 2.13 lose what was not asked for when a process ends.
func (a *attachment) noteBuffers(path string) {
	if !strings.Contains("/"+path+"/", "/pid/") || a.f.perProcess {
		return
	}
	a.f.perProcess = true
	a.f.warnOnce("per process", "The session has buffers for each process: relay daemons up to 2.13 give up what was not read when a process ends. Nothing is lost with buffers for each user: lttng enable-channel --userspace --buffers-uid")
}
