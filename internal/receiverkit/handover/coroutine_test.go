// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"bytes"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/testkit"
)

// goroutine returns the number of its caller's goroutine.
func goroutine() string {
	stack := make([]byte, 64)
	return string(bytes.Fields(stack[:runtime.Stack(stack, false)])[1])
}

func TestCallsThatReturnInTimeAreMadeInTheGoroutineThatRunsTheLoop(t *testing.T) {
	runs, calls := goroutine(), 0
	withCalls(func(call callUntil) {
		for range 10 {
			call(func() {
				calls++
				assert.Equal(t, runs, goroutine())
			}, time.Now().Add(time.Hour))
		}
	})
	assert.Equal(t, 10, calls)
}

func TestALoopContinuesAtTheDeadlineOfACallThatDoesNotReturn(t *testing.T) {
	const calls, most = 3, time.Second
	for name, pause := range map[string]time.Duration{
		"the watch of the call before goes on":   0,
		"the watch of the call before has ended": most,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var took []time.Duration
				looped, late := false, make(chan struct{})
				withCalls(func(call callUntil) {
					for range calls {
						call(func() {}, time.Now().Add(most/2))
						time.Sleep(pause)
						began, hang, before := time.Now(), make(chan struct{}), late
						late = hang
						// The call before returns now, and its goroutine drives no more.
						time.AfterFunc(most/2, func() { close(before) })
						call(func() { <-hang }, began.Add(most))
						took = append(took, time.Since(began))
					}
					looped = true
					close(late)
				})
				assert.True(t, looped, "withCalls returns after the loop")
				assert.Equal(t, []time.Duration{most, most, most}, took)
			})
		})
	}
}

func TestACallThatReturnsAtItsDeadlineIsOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for most := range 100 * time.Nanosecond {
			began, returned := 0, make(chan struct{}, 10)
			withCalls(func(call callUntil) {
				for range cap(returned) {
					began++
					call(func() {
						time.Sleep(most)
						returned <- struct{}{}
					}, time.Now().Add(most))
				}
			})
			for range cap(returned) {
				<-returned
			}
			assert.Equal(t, cap(returned), began)
		}
	})
}

func TestALoopThatHasReturnedIsFreedBeforeItsDeadlines(t *testing.T) {
	held := func() weak.Pointer[[1024]byte] {
		buffer := new([1024]byte)
		withCalls(func(call callUntil) {
			call(func() { buffer[0]++ }, time.Now().Add(time.Hour))
		})
		return weak.Make(buffer)
	}()
	assert.True(t, testkit.Happens(func() bool { runtime.GC(); return held.Value() == nil }))
}

func TestAPanicOfALoopHasTheStackOfTheLoop(t *testing.T) {
	defer func() { assert.Contains(t, recover(), "panicsInALoop") }()
	withCalls(func(callUntil) { panicsInALoop() })
}

func panicsInALoop() { panic("oh") }
