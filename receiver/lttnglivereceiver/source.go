// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"bytes"
	"fmt"
	"hash"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// source is a trace as a connection has it. Which trace it is, its metadata says.
type source struct {
	id          uint64
	path        string
	metadata    uint64
	hasMetadata bool
	// given is how many bytes of metadata came, and digest their hash; data is what came
	// before the trace was known.
	given  int
	digest hash.Hash
	data   []byte
	// read is that metadata as far as it was understood, and readTo how much of it that is.
	read   *ctf.Trace
	readTo int
	trace  *trace
	// waiting are streams that were told before the trace was known.
	waiting []lttnglive.Stream
}

// readMetadata reads all the metadata that there is of a trace.
func (a *attachment) readMetadata(src *source) error {
	for {
		reply, err := a.relay.Metadata(a.ctx, src.metadata, nil)
		if err != nil {
			return protocolError(err)
		}
		if reply.Status != lttnglive.MetadataOK {
			return a.understand(src)
		}
		a.f.counts.bytes.Add(int64(len(reply.Data)))
		a.f.env.telemetry.received(0, int64(len(reply.Data)))
		if err := a.f.charge(src.bytesToTake(len(reply.Data))); err != nil {
			return err
		}
		if err = a.checkMetadata(src, len(reply.Data)); err == nil {
			a.f.measured += len(reply.Data) // until it is measured
			err = src.take(reply.Data)
		}
		if err != nil {
			return &badData{what: badMetadata, err: fmt.Errorf("trace %s: %w", src.path, err)}
		}
		if len(reply.Data) == 0 {
			return a.understand(src)
		}
	}
}

// understand finds out which trace a source is, and checks what was made of its metadata.
func (a *attachment) understand(src *source) error {
	if err := a.f.charge(ctf.BytesOfReading * (len(src.data) - src.readTo)); err != nil {
		return err
	}
	if err := a.settle(src); err != nil {
		return err
	}
	if err := a.checkMetadata(src, 0); err != nil {
		return &badData{what: badMetadata, err: fmt.Errorf("trace %s: %w", src.path, err)}
	}
	return a.measure()
}

// bytesToTake is how much memory it takes to take more metadata: that of a trace that is known is
// read right away. The session is charged before, because many sessions may do it at the same
// time, and none can stop once it has begun.
func (src *source) bytesToTake(more int) int {
	if src.trace == nil {
		return 2 * more
	}
	return ctf.BytesOfReading * more
}

// take takes more metadata. What another source of the trace has given already is the
// same, or they are not of one trace.
func (src *source) take(data []byte) error {
	src.given += len(data)
	t := src.trace
	if t == nil {
		src.digest.Write(data)
		src.data = append(src.data, data...)
		return nil
	}
	known := min(len(data), max(0, t.metadata-(src.given-len(data))))
	src.digest.Write(data[:known])
	if known > 0 && src.given-len(data)+known == t.metadata && !bytes.Equal(src.digest.Sum(nil), t.digest.Sum(nil)) {
		return fmt.Errorf("expected in the first %d bytes what another trace with the UUID %s has, got something else", t.metadata, t.key)
	}
	if known == len(data) {
		return nil
	}
	src.digest.Write(data[known:])
	return t.appendMetadata(data[known:])
}

// join makes the source one of a trace that another one of this connection is of.
func (src *source) join(t *trace) error {
	data := src.data
	src.trace, src.data, src.given = t, nil, 0
	src.digest.Reset()
	return src.take(data)
}

// checkMetadata says whether so many bytes more of a trace's metadata are too much, for
// the trace or for the session.
func (a *attachment) checkMetadata(src *source, more int) error {
	all := more
	if most := a.limits.MaxMetadataBytes; src.given+more > most {
		return fmt.Errorf("expected at most %d bytes of metadata (limits.max_metadata_bytes), got more", most)
	}
	for _, t := range a.f.traces {
		if t.ctf != nil {
			all += t.ctf.Size()
		}
	}
	for _, other := range a.order {
		if all += len(other.data); other.read != nil {
			all += other.read.Size()
		}
	}
	if most := a.limits.MaxSessionMetadataBytes; all > most {
		return fmt.Errorf("expected at most %d bytes of metadata of all %d traces of the session, with what is made of it (limits.max_session_metadata_bytes), got more", most, len(a.order))
	}
	return nil
}

// settle finds out which trace a source is, once its metadata says so.
func (a *attachment) settle(src *source) error {
	if src.trace != nil || len(src.data) == 0 {
		return nil
	}
	if src.read == nil {
		src.read = ctf.NewTrace()
	}
	// Metadata may come a byte at a time: each is read once.
	c, more := src.read, src.data[src.readTo:]
	src.readTo = len(src.data)
	if err := c.Append(more); err != nil {
		return &badData{what: badMetadata, err: fmt.Errorf("trace %s: %w", src.path, err)}
	}
	if !c.Metadata().Declared {
		return nil
	}
	key := a.f.identify(c, src.path)
	t := a.f.traces[key]
	switch {
	case t == nil:
		t = newTrace(a.f, key)
		a.f.traces[key] = t
		t.begin(c, src.data)
	case t.on == a:
		if err := src.join(t); err != nil {
			return &badData{what: badMetadata, err: fmt.Errorf("trace %s: %w", src.path, err)}
		}
	case t.continues(src.data):
		if err := t.appendMetadata(src.data[t.metadata:]); err != nil {
			return &badData{what: badMetadata, err: fmt.Errorf("trace %s: %w", src.path, err)}
		}
	default:
		// It was dropped before, or what is known of it no longer holds.
		t.drop(callevent.CauseDisconnected)
		t.begin(c, src.data)
	}
	src.trace, src.data, src.read = t, nil, nil
	t.on = a
	for _, s := range src.waiting {
		if err := a.open(src, s); err != nil {
			return err
		}
	}
	a.waiting -= len(src.waiting)
	src.waiting = nil
	return nil
}
