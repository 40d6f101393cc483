// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingconnector

import (
	"context"
	"errors"
	"iter"
	"sync"
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

	// mu guards the rest. It is free while the next component is called.
	mu    sync.Mutex
	queue []waiting[M]
	bytes int
	// why is the last error that refused a message.
	why error
	// unmade are the contents of the interval under way that no message has yet, and intervalBytes is the memory of its data.
	unmade, intervalBytes int
	// isAbandoned: a shutdown has left a call of the next component. The sender drops everything.
	isAbandoned bool
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

// begin begins an interval, whose messages will be sent.
func (s *sender[M]) begin(of interval[M]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unmade, s.intervalBytes = of.contents, of.bytes
	if s.isAbandoned {
		s.dropRest(errDeaf)
	}
}

// end ends an interval, and frees its memory.
func (s *sender[M]) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unmade = 0
	s.freeInterval()
}

func (s *sender[M]) freeInterval() {
	s.holding(-s.intervalBytes)
	s.intervalBytes = 0
}

var errDeaf = errors.New("the next component has not returned from a call whose context has ended")

// abandon drops everything, because the goroutine that sends may stay in a call of the next component. That call
// counts as refused, although the component may accept its message later.
func (s *sender[M]) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isAbandoned = true
	s.dropRest(errDeaf)
}

// sendAll sends the messages that wait, and then those of an interval that has begun, each when it is made.
func (s *sender[M]) sendAll(ctx context.Context, of interval[M]) {
	if !s.isConnected() {
		return
	}
	defer s.end()
	s.sendWaiting(ctx)
	for message := range of.messages {
		if !s.send(ctx, message) {
			return
		}
	}
}

// sendLatest sends the messages of an interval that has begun, after those that wait. If an earlier one is refused
// again, it is dropped: a later one has newer values.
func (s *sender[M]) sendLatest(ctx context.Context, of interval[M]) {
	if !s.isConnected() {
		return
	}
	defer s.end()
	s.sendWaiting(ctx)
	s.noteAnswered()
	s.latest = of.made
	first := true
	for message := range of.messages {
		if first {
			s.dropAll(refusedTwice)
			first = false
		}
		if !s.send(ctx, message) {
			return
		}
	}
	s.noteAnswered()
}

// noteAnswered reports the latest interval if none of its messages waits.
func (s *sender[M]) noteAnswered() {
	s.mu.Lock()
	answered := len(s.queue) == 0 && !s.isAbandoned
	s.mu.Unlock()
	if answered {
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
	s.begin(last)
	defer s.end()
	s.sendWaiting(ctx)
	s.offerWaiting(ctx)
	if last.contents > 0 && ctx.Err() == nil {
		for message := range last.messages {
			if !s.send(ctx, message) {
				return
			}
			s.offerWaiting(ctx)
			if ctx.Err() != nil {
				break
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropRest(s.why)
}

// offerWaiting offers refused messages again until all are accepted or ctx is done.
func (s *sender[M]) offerWaiting(ctx context.Context) {
	for ctx.Err() == nil {
		if _, waits := s.first(); !waits {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(offerInterval):
			s.sendWaiting(ctx)
		}
	}
}

// send sends a message, unless others wait. Then it waits behind them. Without room the oldest ones
// are dropped, except after the stop. It reports false if the sender is abandoned.
func (s *sender[M]) send(ctx context.Context, message M) bool {
	w := s.measured(message)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isAbandoned {
		return false
	}
	s.unmade -= w.contents
	s.queue = append(s.queue, w)
	s.hold(w.bytes)
	if len(s.queue) == 1 {
		s.mu.Unlock()
		s.sendWaiting(ctx)
		s.mu.Lock()
	}
	for s.bytes > s.maxBytes && len(s.queue) > 1 && !s.isStopped.Load() {
		s.dropFirst(noRoom, s.why)
	}
	return !s.isAbandoned
}

// sendWaiting sends all messages that wait, until one is refused.
func (s *sender[M]) sendWaiting(ctx context.Context) {
	for {
		message, waits := s.first()
		if !waits {
			return
		}
		if s.capabilities().MutatesData {
			message = s.copyOf(message)
		}
		if !s.answer(s.consume(ctx, message)) {
			return
		}
	}
}

// first is the oldest message that waits. It stays there until its answer.
func (s *sender[M]) first() (message M, waits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return message, false
	}
	return s.queue[0].message, true
}

// answer removes the accepted and the permanently refused part of the first message. It reports whether nothing is left of it.
func (s *sender[M]) answer(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isAbandoned {
		return false
	}
	if err == nil {
		s.removeFirst()
		return true
	}
	if part, named := s.refusedPart(err); named {
		s.replaceFirst(s.measured(part))
	}
	if !consumererror.IsPermanent(err) {
		s.why = err
		return false
	}
	s.dropFirst(refusedForGood, err)
	return true
}

// dropAll drops all messages that wait.
func (s *sender[M]) dropAll(reason dropReason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropQueue(reason, s.why)
}

func (s *sender[M]) dropQueue(reason dropReason, why error) {
	for len(s.queue) > 0 {
		s.dropFirst(reason, why)
	}
}

// dropRest drops all messages that wait, and those that are not made, at a shutdown.
func (s *sender[M]) dropRest(why error) {
	s.dropQueue(atShutdown, why)
	if s.unmade > 0 {
		s.dropped(s.unmade, atShutdown, why)
		s.unmade = 0
	}
	s.freeInterval()
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
