// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/greys"
)

func isReset(command greys.Command) bool {
	_, is := command.(greys.ResetCommand)
	return is
}

// A server that doesn't answer resets holds up what is begun, and nothing else.
func TestWhoeverWaitsIsAnsweredWhileAResetIsNot(t *testing.T) {
	for _, protocol := range []Protocol{ProtocolConsole, ProtocolGP} {
		t.Run(string(protocol), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, monitor := newSteering(t, protocol)
				s.set(func() { s.silent = isReset })
				assert.Equal(t, "ended; a reset restores its classes now", s.mustDo("end", arguments{"task": "1"}).Message)
				<-monitor.over
				starting := s.order("stack", on("demo.Pay", "*"))
				s.expectNothing()
				assert.Equal(t, []string{
					"1 monitor demo.Shop *, cycles of 1s, configured: ended", "2 stack demo.Pay *, 100 calls: waiting",
				}, s.mustDo("list", nil).Items)
				s.mustDo("end", arguments{"task": "2"})
				expectReason(t, starting, agentcontrol.Lost, "another operator has ended the task")
				// It is asked again when its time is over.
				s.set(func() { s.silent = nil })
				time.Sleep(s.receiver.servers[0].asked.ControlTimeout())
				s.awaitSaid("A reset failed, and is tried again: classes keep code of commands")
				s.Await("the reset", func() bool { return s.point("resets{outcome=done}") == 1 })
				assert.EqualValues(t, 1, s.point("resets{outcome=failed}"))
			})
		})
	}
}

// Each who wants a reset is told of the classes that were named.
func TestResetsThatWaitTogetherHaveResultsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, monitor := newSteering(t, ProtocolGP)
		slow := make(chan struct{})
		s.set(func() {
			s.slow = slow
			s.refuse = func(command greys.Command) error {
				if reset, is := command.(greys.ResetCommand); is && reset.Class.String() == "demo.B" {
					return fmt.Errorf("%w: it is in use", greys.ErrRefused)
				}
				return nil
			}
		})
		one, other := s.order("reset", arguments{"class": "demo.A"}), s.order("reset", arguments{"class": "demo.B"})
		synctest.Wait()
		close(slow)
		<-monitor.over
		assert.Equal(t, "the classes are restored", mustDone(t, one).Message)
		expectReason(t, other, agentcontrol.Refused, "it is in use")
		s.expect("Monitor demo.Shop * 1s")
		assert.Equal(t, []string{"Reset demo.A", "Reset demo.B", "Reset demo.Shop"}, resets(s.heard()), "each once")
	})
}

// A reset that was not told, or has failed, is not made up for later: others may have put
// something into the classes since.
func TestAServerThatIsLostBeforeTheResetIsNotReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, monitor := newSteering(t, ProtocolGP)
		slow := make(chan struct{})
		s.set(func() { s.slow = slow })
		resetting := s.order("reset", arguments{"class": "other.*"})
		synctest.Wait()
		assert.True(t, s.was("ended Monitor demo.Shop * 1s"))
		s.set(func() { close(s.lost) })
		close(slow)
		<-monitor.over
		expectReason(t, resetting, agentcontrol.Lost, "before the command was sent")
		s.expect("Monitor demo.Shop * 1s").answer(affectedOne)
		s.expectNothing()
		s.Shutdown()
		assert.NotContains(t, resets(s.heard()), "Reset other.*")
	})
}

// Another that comes while one is asked is asked for after it, by itself.
func TestAResetThatComesWhileOneIsAskedIsAskedAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, monitor := newSteering(t, ProtocolGP)
		s.set(func() { s.silent = isReset })
		first := s.order("reset", arguments{"class": "demo.A"})
		<-monitor.over
		synctest.Wait()
		assert.True(t, s.was("Reset demo.A"))
		second := s.order("reset", arguments{"class": "demo.B"})
		synctest.Wait()
		assert.False(t, s.was("Reset demo.B"))
		s.set(func() { s.silent = func(greys.Command) bool { return false } })
		time.Sleep(s.receiver.servers[0].asked.ControlTimeout()) // the first one has its time
		expectReason(t, first, agentcontrol.NoAnswer, "has not confirmed the reset")
		mustDone(t, second)
		s.expect("Monitor demo.Shop * 1s")
		assert.True(t, s.was("Reset demo.B"))
	})
}

// Who ended something is told that it could not be taken out.
func TestWhoEndsIsToldThatWhatWasPutIntoClassesStays(t *testing.T) {
	for name, why := range map[string]error{
		"the server refuses": fmt.Errorf("%w: it is in use", greys.ErrRefused),
		"it is lost":         errors.New("it is in use"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, monitor := newSteering(t, ProtocolConsole)
				s.set(func() {
					s.refuse = func(command greys.Command) error {
						if isReset(command) {
							return why
						}
						return nil
					}
				})
				answer := s.mustDo("end", arguments{"task": "1"})
				<-monitor.over
				assert.Contains(t, answer.Message, "ended; the reset of its classes failed")
				assert.Contains(t, answer.Message, "it is in use")
			})
		})
	}
}

// Another process that is found while commands are ended for a reset is asked all the same.
func TestAProcessThatIsFoundBeforeAResetIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, monitor := newSteering(t, ProtocolConsole, func(c *Config) { c.StateInterval = time.Second })
		slow := make(chan struct{})
		s.set(func() { s.slow = slow })
		resetting := s.order("reset", nil)
		synctest.Wait()
		s.set(func() { s.pid++ })
		time.Sleep(3 * time.Second)
		close(slow)
		<-monitor.over
		expectReason(t, resetting, agentcontrol.Lost, "restarted before the command was sent")
		s.expect("Monitor demo.Shop * 1s").answer(affectedOne)
		assert.Empty(t, resets(s.heard()), "nothing of ours is in it")
	})
}
