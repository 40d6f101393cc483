// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"math"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// readStack reads the reply to stack ("方法调用堆栈").
func (d *decoder) readStack() {
	d.stack = javamethods.CallStack{Frames: reused(d.stack.Frames)}
	thread := &d.stack.Thread
	d.members(func(key []byte) {
		switch string(key) {
		case "thread-name":
			thread.Name = d.name()
		case "thread-id":
			thread.ID = d.integer(0, math.MaxInt64)
		case "is-daemon":
			thread.Daemon = d.boolean()
		case "priority":
			thread.Priority = int32(d.integer(math.MinInt32, math.MaxInt32))
		case "items":
			d.hasItems = d.peek() == '['
			d.elements(func() {
				d.stack.Frames = append(d.stack.Frames, javamethods.Frame{Line: -1})
				d.readFrame(&d.stack.Frames[len(d.stack.Frames)-1])
			})
		default:
			d.readOther(key)
		}
	})
}

func (d *decoder) readFrame(f *javamethods.Frame) {
	at := d.at
	d.members(func(key []byte) {
		switch string(key) {
		case "classname":
			f.Class = d.name()
		case "method-name":
			f.Method = d.name()
		case "filename":
			f.File = d.name()
		case "line-number":
			f.Line = int32(d.integer(math.MinInt32, math.MaxInt32))
		default:
			d.skip()
		}
	})
	d.require(f.Class != "" && f.Method != "", at, "classname and method-name")
}
