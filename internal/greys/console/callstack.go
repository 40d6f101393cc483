// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"fmt"
	"math"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// stackBlock reads stacks, each with a blank line below:
//
//	thread_name="main" thread_id=0x1;is_daemon=false;priority=5;
//	    @demo.Pay.charge(Shop.java:-1)
//	        at demo.Shop.checkout(Shop.java:10)
type stackBlock struct {
	*output
	definite
	isOpen bool
	stack  stackReader
	reply  javamethods.CallStack
}

func (b *stackBlock) open() bool { return b.isOpen }

func (b *stackBlock) end() error {
	if b.isOpen {
		return unexpected("the rest of a stack, and a blank line", nil)
	}
	return nil
}

func (b *stackBlock) line(text []byte) error {
	if !b.isOpen {
		b.isOpen = true
		b.stack.begin(&b.reply)
	}
	if len(text) == 0 && b.stack.title.complete {
		b.isOpen = false
		b.output.reply(&b.reply)
		return nil
	}
	return b.stack.line(text, &b.names, &b.reply)
}

// stackReader reads the lines of a stack.
type stackReader struct {
	title title
}

func (r *stackReader) begin(into *javamethods.CallStack) {
	r.title.reset()
	into.Frames = reused(into.Frames)
}

const (
	firstFrame    = "    @"
	nextFrame     = "        at "
	expectedFrame = "a frame of a stack: class.method(file:line)"
)

func (r *stackReader) line(text []byte, names *names, into *javamethods.CallStack) error {
	if !r.title.complete {
		return r.title.line(text, names, &into.Thread)
	}
	begin := nextFrame
	if len(into.Frames) == 0 {
		begin = firstFrame
	}
	text, ok := bytes.CutPrefix(text, []byte(begin))
	f, isFrame := names.frame(text)
	if !ok || !isFrame {
		return unexpected(expectedFrame+", behind "+fmt.Sprintf("%q", begin), text)
	}
	into.Frames = append(into.Frames, f)
	return nil
}

// frame reads class.method(file:line). An unknown file is "null".
func (n *names) frame(text []byte) (f javamethods.Frame, ok bool) {
	place, ok := bytes.CutSuffix(text, []byte(")"))
	paren := bytes.LastIndexByte(place, '(')
	if !ok || paren < 0 {
		return f, false
	}
	name, place := place[:paren], place[paren+1:]
	dot, colon := bytes.LastIndexByte(name, '.'), bytes.LastIndexByte(place, ':')
	if dot < 0 || colon < 0 {
		return f, false
	}
	line, ok := integer(place[colon+1:])
	if !ok || line < math.MinInt32 || line > math.MaxInt32 {
		return f, false
	}
	f = javamethods.Frame{Class: n.Intern(name[:dot]), Method: n.Intern(name[dot+1:]), Line: int32(line)}
	if file := place[:colon]; string(file) != noFile {
		f.File = n.Intern(file)
	}
	return f, true
}

const noFile = "null"

// AppendCallStack adds a stack.
func AppendCallStack(b []byte, s *javamethods.CallStack) []byte {
	return append(appendStack(b, s), '\n')
}

// appendStack adds a stack, without the blank line below it.
func appendStack(b []byte, s *javamethods.CallStack) []byte {
	b = append(appendThread(b, &s.Thread), '\n')
	begin := firstFrame
	for _, f := range s.Frames {
		file := f.File
		if file == "" {
			file = noFile
		}
		b = fmt.Appendf(b, "%s%s.%s(%s:%d)\n", begin, f.Class, f.Method, file, f.Line)
		begin = nextFrame
	}
	return b
}
