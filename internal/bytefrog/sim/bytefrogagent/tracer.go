// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogagent

import (
	"errors"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// Program is a traced program.
type Program interface {
	// Run makes the program's calls and writes them into buffers of t. It returns nil at the program's end and when t
	// reports the end of tracing (it may also return an error of t), and any other error if it cannot continue.
	Run(t *Tracer) error
}

// Errors of a Tracer to the program's threads. The threads then collect no calls.
var (
	// ErrSuspended means that calls are not collected for now and have no sequence number. The program flushes its
	// buffers, calls Break with the next number, and runs on.
	ErrSuspended = errors.New("tracing is suspended")
	// ErrUntraced means that tracing is over. The program sends its buffers and runs on untraced.
	ErrUntraced = errors.New("tracing is over")
	// ErrHung means that this thread waits forever. The call returns only because the program is simulated.
	ErrHung = errors.New("the traced program hangs")
)

// Tracer is the agent's interface for the traced program's threads.
type Tracer struct {
	run *run
}

// Nowhere returns a tracer whose buffers, of size bytes, are dropped and immediately free, for measuring programs. It
// has no HQ, so a Program must not report anything.
func Nowhere(size int) *Tracer {
	r := newRun(Options{}.withDefaults(), nil)
	r.started = time.Now()
	r.configuration.QueueRetryCount = 1
	r.pool, _ = newPool(minBuffers*max(size, minBufferSize), size)
	r.change(func(l *life) { l.start() })
	return &Tracer{run: r}
}

// Proceed is called between calls. It returns nil immediately while calls are collected, waits while the program is
// paused, and otherwise returns ErrSuspended, ErrUntraced or ErrHung.
func (t *Tracer) Proceed() error {
	if t.run.blocked.Load() == 0 {
		return nil
	}
	r := t.run
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if err, known := r.refusal(); known {
			return err
		}
		r.changed.Wait()
	}
}

// Acquire returns an empty buffer, and waits if none is free: here a program waits for a slow HQ, or hangs. The errors
// are the ones of Proceed.
func (t *Tracer) Acquire() (*Buffer, error) { return t.acquire(false) }

// AcquireSuspended is Acquire for calls that were collected before a suspend and still have to be sent.
func (t *Tracer) AcquireSuspended() (*Buffer, error) { return t.acquire(true) }

func (t *Tracer) acquire(whileSuspended bool) (*Buffer, error) {
	r := t.run
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.configuration.QueueRetryCount < 1 && r.life.state == tracing {
		const reason = "the configured retry count is 0: the agent failed at its first event"
		r.changeLocked(func(l *life) { l.fail(reason) })
		r.endAfterError(reason)
	}
	var waitedFrom time.Time
	for {
		err, known := r.refusal()
		if known && err != nil && !(whileSuspended && err == ErrSuspended) {
			return nil, err
		}
		if known {
			if b := r.pool.get(); b != nil {
				if !waitedFrom.IsZero() {
					r.waited.Add(int64(time.Since(waitedFrom)))
				}
				return b, nil
			}
		}
		if waitedFrom.IsZero() {
			waitedFrom = time.Now()
		}
		r.changed.Wait()
	}
}

// refusal returns the result for a thread in the current state. known is false while the thread has to wait. The caller
// holds the lock.
func (r *run) refusal() (err error, known bool) {
	l := &r.life
	switch {
	case l.state == hung:
		return ErrHung, true
	case l.state == draining, l.state == failing, l.final():
		return ErrUntraced, true
	case l.state != tracing, l.paused, l.frozen, l.idle:
		return nil, false
	case l.suspended:
		return ErrSuspended, true
	default:
		return nil, true
	}
}

// Send queues b for the senders. It drops the buffer if no sender can send it any more.
func (t *Tracer) Send(b *Buffer) {
	r := t.run
	r.mu.Lock()
	if len(b.Data) == 0 || r.life.final() {
		r.pool.put(b)
		r.mu.Unlock()
		return
	}
	if r.queue == nil {
		r.events.Add(uint64(b.Events))
		r.bytes.Add(uint64(len(b.Data)))
		r.pool.put(b)
		r.mu.Unlock()
		return
	}
	r.life.queued()
	r.mu.Unlock()
	r.queue <- b // the queue has room for all buffers of the pool
}

// Discard returns b to the pool without sending it.
func (t *Tracer) Discard(b *Buffer) {
	r := t.run
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pool.put(b)
	r.changed.Broadcast()
}

// Break reports unseen calls before the number next. Events from next on must not be sent earlier.
func (t *Tracer) Break(next uint32) {
	r := t.run
	r.mu.Lock()
	r.life.answered = r.life.suspensions
	r.mu.Unlock()
	r.breaks.Add(1)
	r.writeControl(bytefrog.DataBreak{Sequence: next})
}

// Report sends any other message on the control connection.
func (t *Tracer) Report(m bytefrog.Message) { t.run.writeControl(m) }

// Suspended reports whether the HQ has suspended the agent.
func (t *Tracer) Suspended() bool {
	r := t.run
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.life.state == tracing && r.life.suspended
}

// AwaitUnsuspend waits while the HQ has suspended the agent and the program has reported its break. It returns nil when
// calls are collected again, ErrUntraced or ErrHung, or ErrSuspended if the agent was suspended again since the last
// Break: the program then has to report another break.
func (t *Tracer) AwaitUnsuspend() error {
	r := t.run
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		err, known := r.refusal()
		if known && (err != ErrSuspended || r.life.answered != r.life.suspensions) {
			return err
		}
		r.changed.Wait()
	}
}

// Elapsed returns the time since the order to start: the agent's clock.
func (t *Tracer) Elapsed() time.Duration { return time.Since(t.run.started) }

// Sleep waits for d, or less if the program may not proceed.
func (t *Tracer) Sleep(d time.Duration) {
	r := t.run
	until := time.Now().Add(d) // computed before the timer starts, so that its wake-up is not too early
	timer := time.AfterFunc(d, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.changed.Broadcast()
	})
	defer timer.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.life.collecting() && time.Now().Before(until) {
		r.changed.Wait()
	}
}

// Configuration returns the configuration from the HQ.
func (t *Tracer) Configuration() bytefrog.AgentConfiguration { return t.run.configuration }

// BufferSize returns the size of a send buffer in bytes.
func (t *Tracer) BufferSize() int { return t.run.pool.size }
