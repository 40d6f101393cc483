// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package hq

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// never is longer than any test takes.
const never = time.Hour

// recorder stores the commands of an agent, and its last status.
type recorder struct {
	mu       sync.Mutex
	commands []bytefrog.MessageType
	last     Status
	err      error
}

func (r *recorder) send(c Command) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commands = append(r.commands, c.Of)
	return r.err
}

func (r *recorder) changed(s Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = s
}

func (r *recorder) sent() []bytefrog.MessageType {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.commands
}

func newTestAgent(t *testing.T, settings Settings) (*Agent, *recorder) {
	r := &recorder{}
	settings.Send, settings.Changed = r.send, r.changed
	a := NewAgent(settings)
	t.Cleanup(a.End)
	return a, r
}

// await waits for a state.
func await(a *Agent, state State) {
	a.Await(func(s Status) bool { return s.State == state }, nil, nil)
}

func TestAnAgentThatDoesNotAnswerInTimeStillGetsUnsuspend(t *testing.T) {
	a, r := newTestAgent(t, Settings{Answer: time.Nanosecond})
	a.SetPrepared()
	a.Suspend(Operator)
	await(a, Unanswered)
	a.Resume(Operator)
	assert.Equal(t, []bytefrog.MessageType{bytefrog.TypeSuspend, bytefrog.TypeUnsuspend}, r.sent())
	assert.Equal(t, Tracing, r.last.State)
}

func TestTheTimeOfAnEarlierSuspendChangesNothing(t *testing.T) {
	a, _ := newTestAgent(t, Settings{Answer: never})
	a.SetPrepared()
	a.Suspend(Operator)
	a.DataBreak(1)
	a.Resume(Operator)
	a.Suspend(Operator)
	a.overdue(1)
	assert.Equal(t, Suspending, a.Status().State)
	a.overdue(2)
	assert.Equal(t, Unanswered, a.Status().State)
}

func TestAnAgentWithoutASignCountsAsPreparedAfterItsTime(t *testing.T) {
	a, r := newTestAgent(t, Settings{Answer: never, Prepared: time.Nanosecond})
	a.Suspend(Operator)
	assert.Empty(t, r.sent())
	a.Joined()
	<-a.Prepared()
	assert.True(t, a.IsPrepared())
	await(a, Suspending)
	assert.Equal(t, []bytefrog.MessageType{bytefrog.TypeSuspend}, r.sent())
}

func TestACommandThatCannotBeSentIsAnErrorForItsCaller(t *testing.T) {
	a, r := newTestAgent(t, Settings{Answer: never})
	a.SetPrepared()
	r.err = errors.New("closed")
	err := a.Do(func(m *Machine) ([]Command, error) { return m.Pause(true), nil })
	require.ErrorIs(t, err, r.err)
	refused := errors.New("refused")
	require.ErrorIs(t, a.Do(func(*Machine) ([]Command, error) { return nil, refused }), refused)
}

func TestHeartbeatsAndChangesWakeWaitingGoroutines(t *testing.T) {
	a, _ := newTestAgent(t, Settings{Answer: never})
	for _, event := range []func(){
		func() { a.Heartbeat(bytefrog.ModeTracing) },
		a.SetPrepared,
		func() { a.Suspend(Operator) },
		func() { a.DataBreak(1) },
		a.End,
	} {
		next := a.Next()
		event()
		<-next
	}
}

func TestAnAgentThatHasEndedHasNoTimers(t *testing.T) {
	a, _ := newTestAgent(t, Settings{Answer: never, Prepared: never})
	a.Joined()
	a.SetPrepared()
	a.Suspend(Operator)
	a.End()
	assert.False(t, a.answering.Stop(), "it was stopped")
	assert.False(t, a.preparing.Stop(), "it was stopped")
	b, _ := newTestAgent(t, Settings{Prepared: never})
	b.End()
	b.Joined()
	assert.Nil(t, b.preparing)
}

func TestAHeartbeatAllocatesNothing(t *testing.T) {
	a, _ := newTestAgent(t, Settings{Answer: never})
	a.SetPrepared()
	assert.Zero(t, testing.AllocsPerRun(100, func() { a.Heartbeat(bytefrog.ModeTracing) }))
}

// Many goroutines wait for one condition, and each is woken.
func TestASignalWakesAllWaitingGoroutines(t *testing.T) {
	var s Signal
	var mu sync.Mutex
	var waiting sync.WaitGroup
	count := 0
	for range 8 {
		waiting.Go(func() {
			for {
				next := s.Next()
				mu.Lock()
				done := count == 1000
				mu.Unlock()
				if done {
					return
				}
				<-next
			}
		})
	}
	for range 1000 {
		mu.Lock()
		count++
		mu.Unlock()
		s.Notify()
	}
	waiting.Wait()
}
