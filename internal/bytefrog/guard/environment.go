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

// environment is shared by all agents of a guard.
type environment struct {
	options Options
	logger  *zap.Logger
	timing  timing
	dial    func(ctx context.Context, address string) (net.Conn, error)
	chunks  chunks
	counts  Counts
	lines   lines

	// stopping ends when the shutdown begins, and ctx when its time is over.
	stopping, ctx context.Context
	// serving counts the goroutines for which the shutdown waits.
	serving sync.WaitGroup
	// cutOff is the number of agents that were disconnected without their answer.
	cutOff atomic.Int32
	// budget bounds the memory of all agents together. Their accounts are in memory.
	budget *budget.Budget
	memory *budget.Group
	// best is the collector that accepted an agent last.
	best atomic.Int32
}

// limit bounds the memory of all agents together, in bytes.
func (e *environment) limit(bytes int64) {
	e.budget = budget.New(bytes)
	e.memory = e.budget.Group("agents")
}

// pause waits until the time or the context is over.
func (e *environment) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// linger reads the connection of an agent whose run has ended, until the agent closes it or the time is over. An agent
// must not find its connection closed earlier.
func (e *environment) linger(conn net.Conn) {
	defer context.AfterFunc(e.ctx, func() { _ = conn.Close() })()
	_ = conn.SetReadDeadline(time.Now().Add(e.timing.linger))
	discard(conn, maxDiscarded)
}

// maxDiscarded bounds the discarded data of a connection. An agent sends far less until it has read its last command.
const maxDiscarded = 1 << 30

// discard reads a connection to its end.
func discard(conn net.Conn, most int64) {
	_, _ = io.Copy(io.Discard, io.LimitReader(conn, most))
}

// lines are log lines that any peer or a slow collector can cause very often.
type lines struct{ accepting, refused, turnedAway, badData, failed, stalled, goesOn, forgotten *logline.Seldom }

// mostLines bounds the lines of a kind in each logline.Pause.
const mostLines = 10

func newLines() lines {
	seldom := func() *logline.Seldom { return &logline.Seldom{Most: mostLines} }
	return lines{seldom(), seldom(), seldom(), seldom(), seldom(), seldom(), seldom(), seldom()}
}

// warn writes a line of a kind, unless there were too many of them.
func (e *environment) warn(of *logline.Seldom, logger *zap.Logger, text string, fields ...zap.Field) {
	since, due := of.Count(time.Now())
	if !due {
		return
	}
	if since > 1 {
		fields = append(fields, zap.Int("since_last_line", since))
	}
	logger.Warn(text, fields...)
}

// timing has the times that an agent's behaviour requires.
type timing struct {
	// answer is how long an agent has to answer suspend with a data break. After that it can get unsuspend without an
	// answer. farewell is the same for the suspend before the guard disconnects.
	answer, farewell time.Duration
	// quiet: during a farewell all data counts as arrived after this time without data. complete is the same if all
	// numbers have arrived that the agent used. drain bounds both.
	quiet, complete, drain time.Duration
	// parting is how much longer than its heartbeat interval an agent has to close its connections after an error
	// message. control is how long its control connection outlives its data connections if the guard closes those.
	parting, control time.Duration
	// orphan: data connections whose control connection has ended are closed after this time without data.
	orphan time.Duration
	// linger is how long an agent has to close its connections after an error message. It is also how long a started
	// agent has to open a data connection or to send a message. rest is how long the rest of a message on a control
	// connection may take.
	linger, rest time.Duration
	// lastSilence is how long a guard that ends waits for a collector that reads nothing.
	lastSilence time.Duration
	// hello is how long a new connection has for its first message when the guard ends.
	hello time.Duration
	// ready is how long after start a refused agent gets its error message, unless it was ready before.
	ready time.Duration
	// prepared is how long after its first data connection an agent counts as prepared for commands,
	// without a sign of it.
	prepared time.Duration
	// tick is the time between two checks of a session.
	tick time.Duration
	// steady: after a link that lived this long, pauses begin with the first one again.
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
