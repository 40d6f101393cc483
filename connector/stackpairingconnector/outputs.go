// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingconnector

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// sender sends the messages of a signal. Refused ones wait, oldest first.
type sender[M any] struct {
	signal[M]
	// maxBytes bounds the memory of messages that wait.
	maxBytes int
	// dropped receives each loss, and holding each change of the memory that is held.
	dropped func(contents int, reason dropReason, err error)
	holding func(bytes int)

	// answered receives the monotonic time of an interval whose messages are all accepted or refused for good, and newer than those
	// of all intervals before. latest is the last interval with messages that were sent. Only sendLatest uses both.
	answered func(time.Duration)
	latest   time.Duration

	// isStopped: maxBytes drops nothing, because the remaining messages are the last ones.
	isStopped atomic.Bool

	queue []waiting[M]
	bytes int
	// why is the last error that refused a message.
	why error
}

// waiting is a message that waits. The next component may change a message that it accepted, so nothing
// reads the message afterwards.
type waiting[M any] struct {
	message M
	// contents are the points or the samples.
	contents, bytes int
}

// interval has the messages of an interval. It is empty without a pipeline of the signal.
type interval[M any] struct {
	messages iter.Seq[M]
	// made is the monotonic time of the interval.
	made time.Duration
	// contents are the points or the samples of all messages. bytes is the memory of their data, which is held until
	// the last message is sent.
	contents, bytes int
}

// signal is what differs between metrics and profiles. consume is nil without a pipeline of the signal.
type signal[M any] struct {
	consume      func(context.Context, M) error
	capabilities func() consumer.Capabilities
	size         func(M) int
	contents     func(M) int
	copyOf       func(M) M
	// refusedPart is the refused part of a message, if the error names one.
	refusedPart func(error) (M, bool)
}

// toMetrics is the signal of a pipeline of metrics.
func toMetrics(next consumer.Metrics) signal[pmetric.Metrics] {
	return signal[pmetric.Metrics]{
		consume: next.ConsumeMetrics, capabilities: next.Capabilities,
		size:     new(pmetric.ProtoMarshaler).MetricsSize,
		contents: pmetric.Metrics.DataPointCount,
		copyOf: func(md pmetric.Metrics) pmetric.Metrics {
			copied := pmetric.NewMetrics()
			md.CopyTo(copied)
			return copied
		},
		refusedPart: func(err error) (pmetric.Metrics, bool) {
			var partial consumererror.Metrics
			if !errors.As(err, &partial) {
				return pmetric.Metrics{}, false
			}
			return partial.Data(), true
		},
	}
}

// toProfiles is the signal of a pipeline of profiles.
func toProfiles(next xconsumer.Profiles) signal[pprofile.Profiles] {
	return signal[pprofile.Profiles]{
		consume: next.ConsumeProfiles, capabilities: next.Capabilities,
		size:     new(pprofile.ProtoMarshaler).ProfilesSize,
		contents: pprofile.Profiles.SampleCount,
		copyOf: func(pd pprofile.Profiles) pprofile.Profiles {
			copied := pprofile.NewProfiles()
			pd.CopyTo(copied)
			return copied
		},
		refusedPart: func(err error) (pprofile.Profiles, bool) {
			var partial xconsumererror.Profiles
			if !errors.As(err, &partial) {
				return pprofile.Profiles{}, false
			}
			return partial.Data(), true
		},
	}
}

// dropReason is why data was dropped. Its text is the metric's attribute.
type dropReason string

const (
	refusedForGood dropReason = "refused_for_good"
	refusedTwice   dropReason = "refused_twice"
	noRoom         dropReason = "no_room"
	atShutdown     dropReason = "shutdown"
)

func (s *sender[M]) isConnected() bool { return s.consume != nil }

// memoryOfByte is about the memory of a message for each byte of it as protobuf: 5 for profiles with
// names of 40 bytes, and 2 to 4 for metrics.
const memoryOfByte = 4

func (s *sender[M]) measured(message M) waiting[M] {
	return waiting[M]{message, s.contents(message), memoryOfByte * s.size(message)}
}

// sendAll sends the messages that wait, and then those of an interval, each when it is made.
func (s *sender[M]) sendAll(ctx context.Context, of interval[M]) {
	if !s.isConnected() {
		return
	}
	defer s.holding(-of.bytes)
	s.sendWaiting(ctx)
	for message := range of.messages {
		s.send(ctx, message)
	}
}

// sendLatest sends the messages of an interval, after those that wait. If an earlier one is refused
// again, it is dropped: a later one has newer values.
func (s *sender[M]) sendLatest(ctx context.Context, of interval[M]) {
	if !s.isConnected() {
		return
	}
	defer s.holding(-of.bytes)
	s.sendWaiting(ctx)
	s.noteAnswered()
	s.latest = of.made
	first := true
	for message := range of.messages {
		if first {
			s.dropAll(refusedTwice)
			first = false
		}
		s.send(ctx, message)
	}
	s.noteAnswered()
}

// noteAnswered reports the latest interval if none of its messages waits.
func (s *sender[M]) noteAnswered() {
	if len(s.queue) == 0 {
		s.answered(s.latest)
	}
}

// offerInterval is the interval at which a shutdown offers what was refused.
const offerInterval = 100 * time.Millisecond

// sendLatestLast is sendLast for messages with newer values than those that wait.
func (s *sender[M]) sendLatestLast(ctx context.Context, last interval[M]) {
	if last.contents > 0 {
		s.sendWaiting(ctx)
		s.dropAll(refusedTwice)
	}
	s.sendLast(ctx, last)
}

// sendLast sends the messages that wait, and then those of the last interval. It makes a message after the one before
// was accepted, and offers refused ones again until ctx is done. Then it drops the rest, without making its messages.
func (s *sender[M]) sendLast(ctx context.Context, last interval[M]) {
	defer s.holding(-last.bytes)
	s.sendWaiting(ctx)
	s.offerWaiting(ctx)
	if last.contents > 0 && ctx.Err() == nil {
		for message := range last.messages {
			last.contents -= s.contents(message)
			s.send(ctx, message)
			s.offerWaiting(ctx)
			if ctx.Err() != nil {
				break
			}
		}
	}
	s.dropAll(atShutdown)
	if last.contents > 0 {
		s.dropped(last.contents, atShutdown, s.why)
	}
}

// offerWaiting offers refused messages again until all are accepted or ctx is done.
func (s *sender[M]) offerWaiting(ctx context.Context) {
	for len(s.queue) > 0 && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(offerInterval):
			s.sendWaiting(ctx)
		}
	}
}

// send sends a message, unless others wait. Then it waits behind them. Without room the oldest ones
// are dropped, except after the stop.
func (s *sender[M]) send(ctx context.Context, message M) {
	w := s.measured(message)
	s.queue = append(s.queue, w)
	s.hold(w.bytes)
	if len(s.queue) == 1 {
		s.sendWaiting(ctx)
	}
	for s.bytes > s.maxBytes && len(s.queue) > 1 && !s.isStopped.Load() {
		s.dropFirst(noRoom, s.why)
	}
}

// sendWaiting sends all messages that wait, until one is refused.
func (s *sender[M]) sendWaiting(ctx context.Context) {
	for len(s.queue) > 0 {
		message := s.queue[0].message
		if s.capabilities().MutatesData {
			message = s.copyOf(message)
		}
		err := s.consume(ctx, message)
		if err == nil {
			s.removeFirst()
			continue
		}
		if part, named := s.refusedPart(err); named {
			s.replaceFirst(s.measured(part))
		}
		if !consumererror.IsPermanent(err) {
			s.why = err
			return
		}
		s.dropFirst(refusedForGood, err)
	}
}

// dropAll drops all messages that wait.
func (s *sender[M]) dropAll(reason dropReason) {
	for len(s.queue) > 0 {
		s.dropFirst(reason, s.why)
	}
}

func (s *sender[M]) dropFirst(reason dropReason, err error) {
	s.dropped(s.queue[0].contents, reason, err)
	s.removeFirst()
}

func (s *sender[M]) replaceFirst(by waiting[M]) {
	s.hold(by.bytes - s.queue[0].bytes)
	s.queue[0] = by
}

func (s *sender[M]) removeFirst() {
	s.replaceFirst(waiting[M]{})
	s.queue = s.queue[1:]
}

func (s *sender[M]) hold(bytes int) {
	s.bytes += bytes
	s.holding(bytes)
}
