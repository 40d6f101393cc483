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

// lines is a log that nobody waits for: what is written is written on by a goroutine of its
// own. Where it is not read, as by a terminal that is stopped or a pipe whose reader stands
// still, what doesn't fit is dropped and counted: a guard that waited for its log would hang
// the programs behind it. It is for many goroutines.
type lines struct {
	out  io.Writer
	news chan struct{}
	// total is how many were dropped since the beginning.
	total atomic.Uint64

	mu sync.Mutex
	// waiting are whole lines; dropped is how many behind them didn't fit. taken says that
	// others are being written.
	waiting []byte
	dropped uint64
	taken   bool
}

// mostWaiting is how many bytes of lines wait: some thousand lines.
const mostWaiting = 256 << 10

// lastLines is how long the end waits for lines to be written.
const lastLines = time.Second

// newLines gives a log that is written to out, for as long as the process lives.
func newLines(out io.Writer) *lines {
	l := &lines{out: out, news: make(chan struct{}, 1)}
	go l.run()
	return l
}

// Write takes a line. It doesn't wait, and has no error.
func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Behind one that was dropped all are, until that can be said in its place.
	if l.dropped > 0 || len(l.waiting)+len(line) > mostWaiting {
		l.dropped++
		l.total.Add(1)
		return len(line), nil
	}
	l.waiting = append(l.waiting, line...)
	select {
	case l.news <- struct{}{}:
	default:
	}
	return len(line), nil
}

// run writes what waits, and where lines were dropped says that.
func (l *lines) run() {
	direct := zap.New(zapcore.NewCore(encoder(), zapcore.AddSync(l.out), zap.WarnLevel))
	var written []byte
	for range l.news {
		for {
			text, dropped := l.take(written[:0])
			if len(text) == 0 && dropped == 0 {
				break
			}
			if n, err := l.out.Write(text); err != nil { // the metric alone can say so
				l.total.Add(uint64(bytes.Count(text[min(n, len(text)):], []byte{'\n'})))
			}
			if dropped > 0 {
				direct.Warn("Lines of the log were dropped here: they were not read", zap.Uint64("lines", dropped))
			}
			written = text
		}
	}
}

// take gives what waits; free is used for what will.
func (l *lines) take(free []byte) (text []byte, dropped uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text, dropped = l.waiting, l.dropped
	l.waiting, l.dropped = free, 0
	l.taken = len(text) > 0 || dropped > 0
	return text, dropped
}

// Sync waits until all is written, but not for long.
func (l *lines) Sync() error {
	for until := time.Now().Add(lastLines); time.Now().Before(until) && !l.isWritten(); {
		time.Sleep(time.Millisecond)
	}
	return nil
}

func (l *lines) isWritten() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting) == 0 && l.dropped == 0 && !l.taken
}

// encoder is how a line looks.
func encoder() zapcore.Encoder {
	c := zap.NewProductionEncoderConfig()
	c.EncodeTime = zapcore.ISO8601TimeEncoder
	return zapcore.NewConsoleEncoder(c)
}

// logger gives a logger of lines from a level on.
func (l *lines) logger(level zapcore.Level) *zap.Logger {
	return zap.New(zapcore.NewCore(encoder(), l, level))
}
