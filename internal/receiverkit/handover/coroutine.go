// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"fmt"
	"iter"
	"runtime/debug"
	"sync"
	"time"
)

// callUntil makes a call. It returns when the call has returned, or soon after the deadline. Then
// the call continues in another goroutine.
type callUntil func(call func(), deadline time.Time)

// withCalls runs a loop that can leave its own calls, and returns when the loop has. No
// goroutine starts for a call that returns in time: each start would wake an idle processor.
//
//  1. The loop is a coroutine. The goroutine that called withCalls drives it.
//  2. For a call the loop stops, and its driver makes the call.
//  3. When the call returns in time, the driver resumes the loop. No processor was woken.
//  4. Otherwise the goroutine of a timer becomes the driver, and resumes the loop.
//  5. The former driver drives no more. It ends when its call has returned.
//
// Only the loop's own goroutine may use the callUntil, and only until the loop returns.
func withCalls(loop func(callUntil)) {
	c := &coroutine{ended: make(chan struct{})}
	c.resume, _ = iter.Pull(func(stop func(*driven) bool) {
		defer c.end()
		loop(func(call func(), deadline time.Time) { stop(&driven{call: call, deadline: deadline}) })
	})
	c.drive()
	<-c.ended
}

// coroutine is the common state of a loop and its drivers.
type coroutine struct {
	// resume runs the loop to its next call, or reports that the loop has returned. Only the
	// driver uses it.
	resume func() (*driven, bool)
	// ended is closed when the loop has returned.
	ended chan struct{}

	mu sync.Mutex
	// current is the call that the driver makes; nil: it makes none.
	current *driven
	// watch calls takeOver at the deadline of current, or earlier; nil: none is set. It outlives
	// a call, so that most calls set no timer.
	watch *time.Timer
}

// driven is a call that a driver makes.
type driven struct {
	call     func()
	deadline time.Time
}

// drive drives the loop until it returns, or until another goroutine drives it.
func (c *coroutine) drive() {
	for {
		d, more := c.resume()
		if !more {
			return
		}
		c.begin(d)
		d.call()
		if !c.returned(d) {
			return
		}
	}
}

func (c *coroutine) begin(d *driven) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current = d
	if c.watch == nil {
		c.watch = time.AfterFunc(time.Until(d.deadline), c.takeOver)
	}
}

// returned reports whether the goroutine that made the call is the driver still.
func (c *coroutine) returned(d *driven) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != d {
		return false
	}
	c.current = nil
	return true
}

// takeOver makes this goroutine, a timer's, the driver if a call has reached its deadline.
func (c *coroutine) takeOver() {
	if c.isOverdue() {
		c.drive()
	}
}

// isOverdue reports whether a call has reached its deadline, and takes the call from its driver
// then. If a call continues, it sets the watch for it.
func (c *coroutine) isOverdue() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil {
		if rest := time.Until(c.current.deadline); rest > 0 {
			c.watch.Reset(rest)
			return false
		}
	}
	overdue := c.current != nil
	c.current, c.watch = nil, nil
	return overdue
}

// end ends the coroutine when its loop returns. A panic of the loop continues in the driver, where
// the stack of the loop is unknown, so end adds it.
func (c *coroutine) end() {
	c.mu.Lock()
	if c.watch != nil {
		c.watch.Stop()
	}
	c.mu.Unlock()
	close(c.ended)
	if p := recover(); p != nil {
		panic(fmt.Sprintf("%v\n\n%s", p, debug.Stack()))
	}
}
