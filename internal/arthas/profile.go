// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthas

import (
	"errors"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"
)

// cutFactor limits the part of a text that is read and dropped, as a multiple of its maximum length.
const cutFactor = 16

// shortTexts reads JSON, and drops the bytes of its texts beyond a length. It keeps quotes and whole escapes, so the rest is
// JSON too.
type shortTexts struct {
	from io.Reader
	// longest is the maximum length of a text, as it stands in the JSON.
	longest int64
	// length is that of the current text, and cut counts all dropped bytes.
	length, cut int64
	inText      bool
	// escape is the number of bytes of an escape that follow. dropping means that the current character is dropped.
	escape   int
	dropping bool
}

// Read reads into p, and removes the dropped bytes.
func (t *shortTexts) Read(p []byte) (int, error) {
	for {
		n, err := t.from.Read(p)
		kept := 0
		for _, b := range p[:n] {
			if t.keeps(b) {
				p[kept] = b
				kept++
			}
		}
		t.cut += int64(n - kept)
		if kept > 0 || err != nil || len(p) == 0 {
			return kept, err
		}
	}
}

// keeps accepts the next byte, and reports whether it stays.
func (t *shortTexts) keeps(b byte) bool {
	const unit = 4 // digits of an escape that begins with u
	switch {
	case !t.inText:
		t.inText, t.length = b == '"', 0
		return true
	case t.escape == 0 && b == '"':
		t.inText = false
		return true
	case t.escape == 0:
		t.dropping = t.length >= t.longest
		if b == '\\' {
			t.escape = 1
		}
	case b == 'u':
		t.escape = unit
	default:
		t.escape--
	}
	if t.dropping {
		return false
	}
	t.length++
	return true
}

// dropBroken drops the last stack if the text was cut inside of it.
func (p *Profiler) dropBroken(cut int64) {
	if cut == 0 {
		return
	}
	whole := strings.LastIndexByte(p.Text, '\n') + 1
	p.Cut = cut + int64(len(p.Text)-whole)
	p.Text = p.Text[:whole]
}

// HasNoStacks reports whether the text is an answer to a [StopProfilerCommand] without stacks. A profiler that is too old stops,
// and does not send them.
func (p *Profiler) HasNoStacks() bool { return strings.Contains(p.Text, "No dump options specified") }

// Running returns for how long the profiler has been running, in whole seconds, from the result of a [ProfilerStatusCommand].
func (p *Profiler) Running() (since time.Duration, is bool) {
	_, rest, found := strings.Cut(p.Text, "rofiling is running for ")
	number, _, end := strings.Cut(rest, " second")
	seconds, err := strconv.ParseUint(number, 10, 32)
	return time.Duration(seconds) * time.Second, found && end && err == nil
}

// IsProfilerRunning reports whether an error means that the profiler did not start, because it runs.
func IsProfilerRunning(err error) bool {
	var failed *CommandError
	return errors.As(err, &failed) && strings.Contains(failed.Message, "already started")
}

// CollapsedStack is a line of a profile.
type CollapsedStack struct {
	// frames are joined by semicolons, the caller first.
	frames string
	// Value is the sum of all samples with these frames, in nanoseconds or bytes. It is at least 1.
	Value int64
}

// Stacks yields the stacks of a profile. It returns the number of lines that are no stacks by the pointer.
func (p *Profiler) Stacks(malformed *int64) iter.Seq[CollapsedStack] {
	return func(yield func(CollapsedStack) bool) {
		for line := range strings.Lines(p.Text) {
			line = strings.TrimSuffix(line, "\n")
			if line == "" {
				continue
			}
			at := strings.LastIndexByte(line, ' ')
			value, err := strconv.ParseInt(line[at+1:], 10, 64)
			if at <= 0 || err != nil || value <= 0 {
				*malformed++
				continue
			}
			if !yield(CollapsedStack{line[:at], value}) {
				return
			}
		}
	}
}

// Frames yields the frames, the caller first.
func (s CollapsedStack) Frames() iter.Seq[CollapsedFrame] {
	return func(yield func(CollapsedFrame) bool) {
		for text := range strings.SplitSeq(s.frames, ";") {
			if !yield(frameOf(text)) {
				return
			}
		}
	}
}

// CollapsedFrame is a frame of a stack.
type CollapsedFrame struct {
	// Name is the name of a method with its qualified class, of a class whose objects are allocated or locked, or of a
	// function. A name of Java has dots.
	Name string
	Kind FrameKind
}

// FrameKind is the kind of code of a frame.
type FrameKind uint8

// The kinds of frames.
const (
	FrameNative FrameKind = iota
	FrameJava
	FrameKernel
)

// frameOf reads a frame with the suffix of its kind.
func frameOf(text string) CollapsedFrame {
	const suffix = len("_[j]")
	if len(text) <= suffix {
		return CollapsedFrame{Name: text}
	}
	name := text[:len(text)-suffix]
	switch text[len(name):] {
	case "_[0]", "_[1]", "_[i]", "_[j]":
		return CollapsedFrame{Name: strings.ReplaceAll(name, "/", "."), Kind: FrameJava}
	case "_[k]":
		return CollapsedFrame{Name: name, Kind: FrameKernel}
	default:
		return CollapsedFrame{Name: text}
	}
}
