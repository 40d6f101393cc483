// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package hq

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

func TestAFinalSuspendWaitsUntilTheAgentAnswersEndsOrDisconnects(t *testing.T) {
	gone := make(chan struct{})
	close(gone)
	for name, c := range map[string]struct {
		during   func(a *Agent)
		gone     <-chan struct{}
		patience time.Duration
		state    State
	}{
		"it answers":               {func(a *Agent) { a.DataBreak(3) }, nil, never, Suspended},
		"it ends its tracing":      {func(a *Agent) { a.Heartbeat(bytefrog.ModeShuttingDown) }, nil, never, Ended},
		"its connection has ended": {func(*Agent) {}, gone, never, Suspending},
		"it has no more patience":  {func(*Agent) {}, nil, time.Nanosecond, Suspending},
	} {
		t.Run(name, func(t *testing.T) {
			a, r := newTestAgent(t, Settings{Answer: never})
			a.SetPrepared()
			a.Pause(true)
			var answering sync.WaitGroup
			answering.Go(func() {
				await(a, Suspending)
				c.during(a)
			})
			assert.Equal(t, c.state, a.SuspendForGood(c.gone, c.patience).State)
			answering.Wait()
			assert.Equal(t, []bytefrog.MessageType{bytefrog.TypePause, bytefrog.TypeUnpause, bytefrog.TypeSuspend}, r.sent())
		})
	}
}

// arriving are data connections whose data a test decides.
type arriving struct {
	changed Signal

	mu      sync.Mutex
	arrived Arrivals
	// looked, if set, is called with the number of checks by AwaitRest.
	looked func(times int)
	looks  int
	// last is the last result for AwaitRest.
	last Arrivals
}

func (a *arriving) Arrivals() Arrivals {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.looks++; a.looked != nil {
		a.looked(a.looks)
	}
	a.last = a.arrived
	return a.arrived
}

func (a *arriving) NextArrival() <-chan struct{} { return a.changed.Next() }

func (a *arriving) change(to Arrivals) {
	a.mu.Lock()
	a.arrived = to
	a.mu.Unlock()
	a.changed.Notify()
}

func TestTheRestOfAnAgentHasArrived(t *testing.T) {
	patient := RestTimes{Quiet: never, Complete: never, Limit: never}
	for name, c := range map[string]struct {
		times  RestTimes
		begin  Arrivals
		answer bool // to suspend, before the number 300
		change *Arrivals
	}{
		"when all connections have ended": {patient, Arrivals{}, true, &Arrivals{Ended: true}},
		"when nothing arrives":            {RestTimes{Quiet: 1, Complete: never, Limit: never}, Arrivals{Numbered: 299}, true, nil},
		"soon when all numbers arrived":   {RestTimes{Quiet: never, Complete: 1, Limit: never}, Arrivals{Numbered: 299}, true, &Arrivals{Numbered: 300}},
		"soon when more arrived":          {RestTimes{Quiet: never, Complete: 1, Limit: never}, Arrivals{Numbered: 301}, true, nil},
		"not soon without an answer":      {RestTimes{Quiet: 1, Complete: never, Limit: never}, Arrivals{Numbered: 300}, false, nil},
		"when the limit is reached":       {RestTimes{Quiet: never, Complete: never, Limit: 1}, Arrivals{}, true, nil},
		"after those who were held":       {RestTimes{Quiet: never, Complete: never, Limit: 1}, Arrivals{Held: true}, true, &Arrivals{}},
		"not while readers are held":      {RestTimes{Quiet: 1, Complete: 1, Limit: never}, Arrivals{Held: true}, true, &Arrivals{}},
		"after those who were behind":     {RestTimes{Quiet: 1, Complete: 1, Limit: never}, Arrivals{Behind: true}, true, &Arrivals{}},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := newTestAgent(t, Settings{Answer: never})
			a.SetPrepared()
			a.Suspend(Leaving)
			if c.answer {
				a.DataBreak(300)
			}
			in := &arriving{arrived: c.begin}
			var changing sync.WaitGroup
			if c.change != nil {
				seen := make(chan struct{})
				in.looked = func(times int) {
					if times == 2 { // the first look is before the wait
						close(seen)
					}
				}
				changing.Go(func() {
					<-seen
					in.change(*c.change)
				})
			}
			assert.True(t, a.AwaitRest(in, c.times, nil, nil))
			assert.False(t, in.last.Held || in.last.Behind, "it waited for them")
			changing.Wait()
		})
	}
}

func TestTheWaitForTheRestEndsWithAMoreUrgentEvent(t *testing.T) {
	patient := RestTimes{Quiet: never, Complete: never, Limit: never}
	a, _ := newTestAgent(t, Settings{Answer: never})
	urgent := make(chan struct{})
	close(urgent)
	assert.False(t, a.AwaitRest(&arriving{}, patient, urgent, nil))
	assert.False(t, a.AwaitRest(&arriving{}, patient, nil, urgent))
}

func TestADataBreakWhileTheRestArrivesIsNoticed(t *testing.T) {
	a, _ := newTestAgent(t, Settings{Answer: never})
	a.SetPrepared()
	a.Suspend(Leaving)
	in := &arriving{arrived: Arrivals{Numbered: 300}}
	var answering sync.WaitGroup
	seen := make(chan struct{})
	in.looked = func(times int) {
		if times == 2 {
			close(seen)
		}
	}
	answering.Go(func() {
		<-seen
		a.DataBreak(300)
	})
	assert.True(t, a.AwaitRest(in, RestTimes{Quiet: never, Complete: 1, Limit: never}, nil, nil))
	answering.Wait()
}

// parted are the connections of an agent that was sent an error message.
type parted struct {
	data, control chan struct{}
	// closesControl: the agent closes its control connection when its data connections are closed.
	closesControl bool
	closed        []string
}

func (p *parted) Gone() (data []<-chan struct{}, control <-chan struct{}) {
	return []<-chan struct{}{p.data}, p.control
}

func (p *parted) CloseData() {
	p.closed = append(p.closed, "data")
	if p.closesControl {
		close(p.control)
	}
}

func (p *parted) CloseControl() { p.closed = append(p.closed, "control") }

func TestConnectionsThatAnAgentDoesNotCloseAreClosedInOrder(t *testing.T) {
	over, never := make(chan struct{}), (chan struct{})(nil)
	close(over)
	soon, late := func() time.Duration { return 1 }, func() time.Duration { return time.Hour }
	cut := []string{"data", "control"}
	for name, c := range map[string]struct {
		parting             Parting
		data, control, will bool
		closed              []string
	}{
		"an agent that has closed all":               {Parting{Stopping: never}, true, true, false, nil},
		"one that has answered, after its grace":     {Parting{Stopping: over, Grace: soon, Answered: true, Control: 1}, false, false, false, cut},
		"one that has answered, at the end":          {Parting{Stopping: over, Grace: soon, Over: over, Answered: true, Control: 1}, false, false, false, cut},
		"one that has not answered, at the end":      {Parting{Stopping: over, Grace: soon, Over: over, Control: 1}, false, false, false, cut},
		"at the end of all, after any events":        {Parting{Stopping: over, Grace: late, Cut: over, Control: 1}, false, false, false, cut},
		"control waits for an agent that notices":    {Parting{Stopping: never, Cut: over, Control: time.Hour}, false, false, true, cut},
		"control does not wait where no data was":    {Parting{Stopping: never, Cut: over, Control: time.Hour}, true, false, false, cut},
		"an agent that has closed control only, too": {Parting{Stopping: never, Cut: over, Control: time.Hour}, false, true, false, cut},
	} {
		t.Run(name, func(t *testing.T) {
			p := &parted{data: make(chan struct{}), control: make(chan struct{}), closesControl: c.will}
			if c.data {
				close(p.data)
			}
			if c.control {
				close(p.control)
			}
			c.parting.Await(p)
			assert.Equal(t, c.closed, p.closed)
		})
	}
}
