// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
)

// environment is what all agents of a guard share.
type environment struct {
	options Options
	logger  *zap.Logger
	timing  timing
	dial    func(ctx context.Context, address string) (net.Conn, error)
	chunks  chunks
	counts  Counts
	lines   lines

	// stopping ends when the guard is to end, ctx when its time for that is over.
	stopping, ctx context.Context
	// serving counts the goroutines that the guard's end waits for.
	serving sync.WaitGroup
	// cutOff is how many agents were left with open connections, and without an answer.
	cutOff atomic.Int32
	// budget bounds what all agents hold together, whose accounts are in memory.
	budget *budget.Budget
	memory *budget.Group
	// best is which collector was reached last.
	best atomic.Int32
}

// limit bounds what all agents hold together, in bytes.
func (e *environment) limit(bytes int64) {
	e.budget = budget.New(bytes)
	e.memory = e.budget.Group("agents")
}

// pause waits, at most until the context is over.
func (e *environment) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// linger reads the connection of an agent whose run has ended, and closes it itself:
// an agent must not find its connection closed earlier.
func (e *environment) linger(conn net.Conn) {
	defer context.AfterFunc(e.ctx, func() { _ = conn.Close() })()
	_ = conn.SetReadDeadline(time.Now().Add(e.timing.linger))
	discard(conn, maxDiscarded)
}

// maxDiscarded is how much of a connection that is no use any more is read: far more than
// an agent can send as long as it runs, until it has read its last command.
const maxDiscarded = 1 << 30

// discard reads a connection to its end.
func discard(conn net.Conn, most int64) {
	_, _ = io.Copy(io.Discard, io.LimitReader(conn, most))
}

// lines are those of the log that anybody can cause who can connect, as often as he likes, and
// those that a slow collector causes again and again.
type lines struct{ accepting, refused, turnedAway, badData, failed, stalled, goesOn, forgotten *logline.Seldom }

// mostLines is how many lines of a sort are written in each logline.Pause.
const mostLines = 10

func newLines() lines {
	seldom := func() *logline.Seldom { return &logline.Seldom{Most: mostLines} }
	return lines{seldom(), seldom(), seldom(), seldom(), seldom(), seldom(), seldom(), seldom()}
}

// warn writes a line of a sort, unless there were too many of them.
func (e *environment) warn(of *logline.Seldom, logger *zap.Logger, text string, fields ...zap.Field) {
	since, say := of.Say(time.Now())
	if !say {
		return
	}
	if since > 1 {
		fields = append(fields, zap.Int("since_last_line", since))
	}
	logger.Warn(text, fields...)
}

// timing are the times that an agent's behaviour requires.
type timing struct {
	// answer is how long an agent has to answer suspend with a data break before it is sent unsuspend
	// all the same; farewell the same before the guard disconnects from it.
	answer, farewell time.Duration
	// quiet is how long nothing has to arrive of an agent in its farewell until all counts as arrived,
	// complete the same when as many numbers have arrived as it gave out, and drain how long that
	// may take at most.
	quiet, complete, drain time.Duration
	// parting is how much longer than its heartbeat interval an agent has to close its connections
	// when it was sent error; control how long its control connection outlives its data connections
	// if they have to be closed.
	parting, control time.Duration
	// orphan is how long nothing has to arrive on data connections, whose control connection has
	// ended, until they are closed.
	orphan time.Duration
	// linger is how long an agent that was sent error has to close its connections, and one that was
	// started to open a data connection or to send a message; rest is how long a message on a control
	// connection may take to arrive whole.
	linger, rest time.Duration
	// lastSilence is after how long a guard that ends gives a collector up that reads nothing.
	lastSilence time.Duration
	// hello is how long a new connection has for its first message when the guard ends.
	hello time.Duration
	// ready is how long after start an agent that is turned away gets its error message, unless it
	// was ready before.
	ready time.Duration
	// prepared is how long after its first data connection an agent counts as prepared for commands,
	// without a sign of it.
	prepared time.Duration
	// tick is how often a session checks what time has changed.
	tick time.Duration
	// steady is how long a link has to live for the next pause to be the first again.
	steady time.Duration
}

func defaultTiming() timing {
	return timing{
		answer: 5 * time.Second, farewell: time.Second,
		quiet: time.Second, complete: 20 * time.Millisecond, drain: 5 * time.Second,
		parting: 500 * time.Millisecond, control: 300 * time.Millisecond,
		orphan: 10 * time.Second, linger: time.Minute, rest: time.Minute, lastSilence: 3 * time.Second, hello: time.Second, ready: 500 * time.Millisecond,
		prepared: 500 * time.Millisecond,
		tick:     250 * time.Millisecond, steady: time.Minute,
	}
}
