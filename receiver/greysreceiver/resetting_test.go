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
	"github.com/callbraid/callbraid/internal/javamethods"
)

func isReset(command javamethods.Command) bool {
	_, is := command.(javamethods.ResetCommand)
	return is
}

// A server that does not answer resets delays only the start of commands.
func TestOrdersAreAnsweredDuringAnUnansweredReset(t *testing.T) {
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
				// The command is sent again after the timeout of the reset.
				s.set(func() { s.silent = nil })
				time.Sleep(s.receiver.servers[0].Session.ControlTimeout())
				s.awaitLogged("A reset failed, and is tried again: classes keep code of commands")
				s.Await("the reset", func() bool { return s.point("resets{outcome=done}") == 1 })
				assert.EqualValues(t, 1, s.point("resets{outcome=failed}"))
			})
		})
	}
}

// Each order for a reset has the result for its own classes.
func TestResetOrdersInOneRoundHaveTheirOwnResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, monitor := newSteering(t, ProtocolGP)
		slow := make(chan struct{})
		s.set(func() {
			s.slow = slow
			s.refuse = func(command javamethods.Command) error {
				if reset, is := command.(javamethods.ResetCommand); is && reset.Class.String() == "demo.B" {
					return fmt.Errorf("%w: it is in use", javamethods.ErrRefused)
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
		assert.Equal(t, []string{"Reset demo.A", "Reset demo.B", "Reset demo.Shop"}, resets(s.newCommands()), "each once")
	})
}

// An unsent or failed reset is not repeated later: other clients may have instrumented the classes since.
func TestAResetOrderFailsIfTheServerIsLostBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, monitor := newSteering(t, ProtocolGP)
		slow := make(chan struct{})
		s.set(func() { s.slow = slow })
		resetting := s.order("reset", arguments{"class": "other.*"})
		synctest.Wait()
		assert.True(t, s.hasReceived("ended Monitor demo.Shop * 1s"))
		s.set(func() { close(s.lost) })
		close(slow)
		<-monitor.over
		expectReason(t, resetting, agentcontrol.Lost, "before the command was sent")
		s.expect("Monitor demo.Shop * 1s").answer(affectedOne)
		s.expectNothing()
		s.Shutdown()
		assert.NotContains(t, resets(s.newCommands()), "Reset other.*")
	})
}

// An order that arrives during a reset has its own reset afterwards.
func TestAResetOrderDuringAResetIsSentAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, monitor := newSteering(t, ProtocolGP)
		s.set(func() { s.silent = isReset })
		first := s.order("reset", arguments{"class": "demo.A"})
		<-monitor.over
		synctest.Wait()
		assert.True(t, s.hasReceived("Reset demo.A"))
		second := s.order("reset", arguments{"class": "demo.B"})
		synctest.Wait()
		assert.False(t, s.hasReceived("Reset demo.B"))
		s.set(func() { s.silent = func(javamethods.Command) bool { return false } })
		time.Sleep(s.receiver.servers[0].Session.ControlTimeout()) // the first reset times out
		expectReason(t, first, agentcontrol.NoAnswer, "has not confirmed the reset")
		mustDone(t, second)
		s.expect("Monitor demo.Shop * 1s")
		assert.True(t, s.hasReceived("Reset demo.B"))
	})
}

// The answer to the order contains the failure of the reset.
func TestAnEndOrderReportsAFailedReset(t *testing.T) {
	for name, why := range map[string]error{
		"the server refuses":     fmt.Errorf("%w: it is in use", javamethods.ErrRefused),
		"the connection is lost": errors.New("it is in use"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, monitor := newSteering(t, ProtocolConsole)
				s.set(func() {
					s.refuse = func(command javamethods.Command) error {
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

// The new process still receives commands.
func TestAProcessFoundBeforeAResetReceivesCommands(t *testing.T) {
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
		assert.Empty(t, resets(s.newCommands()), "the new process needs no reset")
	})
}
