// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// lines is a log whose writers never wait: one goroutine writes the lines to out. If out blocks, such
// as a stopped terminal or a full pipe, lines that don't fit are dropped and counted. A guard that
// waits for its log would hang the traced programs. Many goroutines can call it.
type lines struct {
	out  io.Writer
	news chan struct{}
	// total is the number of dropped lines since the start.
	total atomic.Uint64

	mu sync.Mutex
	// waiting are whole lines. dropped is the number of lines behind them that didn't fit.
	waiting []byte
	dropped uint64
	// done is closed when all lines are written; nil: they are.
	done chan struct{}
}

// mostWaiting is the largest number of bytes of waiting lines: some thousand lines.
const mostWaiting = 256 << 10

// lastLines is the longest time that Sync waits.
const lastLines = time.Second

// newLines returns a log to out, for the life of the process.
func newLines(out io.Writer) *lines {
	l := &lines{out: out, news: make(chan struct{}, 1)}
	go l.run()
	return l
}

// Write adds a line. It doesn't wait, and has no error.
func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// After a dropped line all are dropped, until a line about them is written in their place.
	if l.done == nil {
		l.done = make(chan struct{})
	}
	if l.dropped > 0 || len(l.waiting)+len(line) > mostWaiting {
		l.dropped++
		l.total.Add(1)
	} else {
		l.waiting = append(l.waiting, line...)
	}
	select {
	case l.news <- struct{}{}:
	default:
	}
	return len(line), nil
}

// run writes the waiting lines, and a line where others were dropped.
func (l *lines) run() {
	direct := zap.New(zapcore.NewCore(encoder(), zapcore.AddSync(l.out), zap.WarnLevel))
	var written []byte
	for range l.news {
		for {
			text, dropped := l.next(written[:0])
			written = text // the other buffer has the next lines now
			if len(text) == 0 && dropped == 0 {
				break
			}
			if n, err := l.out.Write(text); err != nil { // only the metric can report it
				l.total.Add(uint64(bytes.Count(text[min(n, len(text)):], []byte{'\n'})))
			}
			if dropped > 0 {
				direct.Warn("Lines of the log were dropped here: they were not read", zap.Uint64("lines", dropped))
			}
		}
	}
}

// next returns the waiting lines, after the previous ones were written. free becomes the buffer of
// further lines.
func (l *lines) next(free []byte) (text []byte, dropped uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text, dropped = l.waiting, l.dropped
	l.waiting, l.dropped = free, 0
	if len(text) == 0 && dropped == 0 && l.done != nil {
		close(l.done)
		l.done = nil
	}
	return text, dropped
}

// Sync waits until all lines are written, but not for long.
func (l *lines) Sync() error {
	timeout := time.NewTimer(lastLines)
	defer timeout.Stop()
	select {
	case <-l.written():
	case <-timeout.C:
	}
	return nil
}

// written returns a channel that is closed when all lines are written.
func (l *lines) written() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done == nil {
		done := make(chan struct{})
		close(done)
		return done
	}
	return l.done
}

// encoder formats a line.
func encoder() zapcore.Encoder {
	c := zap.NewProductionEncoderConfig()
	c.EncodeTime = zapcore.ISO8601TimeEncoder
	return zapcore.NewConsoleEncoder(c)
}

// logger returns a logger of lines from a level on.
func (l *lines) logger(level zapcore.Level) *zap.Logger {
	return zap.New(zapcore.NewCore(encoder(), l, level))
}
