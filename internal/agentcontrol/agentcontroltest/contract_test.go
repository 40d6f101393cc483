// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontroltest

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/component"

	"github.com/callbraid/callbraid/internal/agentcontrol"
)

// model is a receiver with an agent, without anything between them.
type model struct {
	fault string
	turn  chan struct{}
	// left is closed when the receiver is shut down, died when the agent is gone.
	left, died chan struct{}

	mu      sync.Mutex
	silent  bool
	told    int
	records []map[string]any
}

var modelType = component.MustNewType("model")

var modelCommands = []agentcontrol.Command{
	{Name: "suspend", Summary: "Stop."},
	{Name: "unsuspend", Summary: "Go on."},
	{Name: "enable", Summary: "Enable a logger.", Parameters: []agentcontrol.Parameter{
		{Name: "logger", Summary: "Its name.", Kind: agentcontrol.Text, Required: true},
		{Name: "limit", Summary: "How many.", Kind: agentcontrol.Integer, Least: 1, Most: 10},
		{Name: "all", Summary: "All of them.", Kind: agentcontrol.Boolean},
	}},
}

func (*model) ID() string { return agentcontrol.NewID("model") }

func (m *model) Snapshot() agentcontrol.Snapshot {
	begun := time.Unix(1000, 0)
	s := agentcontrol.Snapshot{
		Tracer: "model", Receiver: "model/1", Service: "shop", Address: "127.0.0.1:1", State: "tracing",
		Since: begun, LastSeen: begun, Commands: modelCommands,
		Counters: []agentcontrol.Counter{{Name: "events", Unit: "{event}", Value: 1}},
	}
	switch m.fault {
	case "last seen before its begin":
		s.LastSeen = time.Time{}
	case "a command that has no example":
		s.Commands = append(s.Commands[:3:3], agentcontrol.Command{Name: "more", Summary: "More."})
	case "a summary that is no sentence":
		s.Commands = []agentcontrol.Command{{Name: "suspend", Summary: "stop"}, modelCommands[1], modelCommands[2]}
	}
	return s
}

func (m *model) Do(ctx context.Context, o agentcontrol.Order) (agentcontrol.Answer, error) {
	if m.fault == "answers after its end" && isClosed(m.left) {
		return agentcontrol.Answer{Message: "done"}, nil
	}
	if m.fault != "receives cancelled orders" && ctx.Err() != nil {
		return agentcontrol.Answer{}, ctx.Err()
	}
	ended := ctx.Done()
	if m.fault == "waits longer than its context" {
		ended = nil
	}
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-m.left:
		return agentcontrol.Answer{}, errors.New("it is shut down")
	case <-ended:
		return agentcontrol.Answer{}, ctx.Err()
	}
	return m.tell(ctx)
}

func (m *model) tell(ctx context.Context) (agentcontrol.Answer, error) {
	if isClosed(m.left) || isClosed(m.died) {
		return agentcontrol.Answer{}, errors.New("it is gone")
	}
	m.mu.Lock()
	m.told++
	silent, second := m.silent, m.told%2 == 0
	m.mu.Unlock()
	if m.fault == "one of two orders is refused" && second {
		return agentcontrol.Answer{}, errors.New("it is asked for already")
	}
	if !silent {
		return agentcontrol.Answer{Message: "done"}, nil
	}
	if m.fault == "no answer after its death" {
		<-ctx.Done()
		return agentcontrol.Answer{}, ctx.Err()
	}
	select {
	case <-m.left:
	case <-m.died:
	case <-ctx.Done():
		return agentcontrol.Answer{}, ctx.Err()
	}
	return agentcontrol.Answer{}, errors.New("it is gone")
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (m *model) SendRecord(r agentcontrol.Record) {
	if m.fault == "no record of refused orders" && r.Err != nil {
		return
	}
	attributes := map[string]any{}
	for _, a := range r.Attributes() {
		attributes[a.Key] = a.Value
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records = append(m.records, attributes)
}

// contractOf is that of models with a fault.
func contractOf(fault string) Contract {
	begun := 0
	return Contract{
		Type: modelType,
		Examples: []Example{
			{Command: "suspend"}, {Command: "unsuspend"}, {Command: "enable", Arguments: map[string]string{"logger": "x", "limit": "1"}},
		},
		Start: func(t testing.TB, host component.Host) Played {
			m := &model{fault: fault, turn: make(chan struct{}, 1), left: make(chan struct{}), died: make(chan struct{})}
			end := agentcontrol.Of(host).Register(m)
			begun++
			if fault == "registered twice" || fault == "shown twice after a reload" && begun == 2 {
				agentcontrol.Of(host).Register(m)
			}
			shutdown := sync.OnceFunc(func() {
				close(m.left)
				if fault != "shown after its end" {
					end()
				}
			})
			t.Cleanup(shutdown)
			return Played{
				Shutdown: shutdown, Die: func() { close(m.died); end() },
				Silence:  func() { m.mu.Lock(); m.silent = true; m.mu.Unlock() },
				Received: func() int { m.mu.Lock(); defer m.mu.Unlock(); return m.told },
				Records:  func() []map[string]any { m.mu.Lock(); defer m.mu.Unlock(); return m.records },
			}
		},
	}
}

func TestAModelFulfilsTheContract(t *testing.T) { contractOf("").Run(t) }

// recorder is a test that records failures, instead of failing the test that runs it.
type recorder struct {
	testing.TB
	mu     sync.Mutex
	failed bool
}

func (r *recorder) Errorf(string, ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) FailNow() {
	r.Errorf("")
	runtime.Goexit()
}

// Each fault is found by the check that it is named beside.
func TestEachBreachOfTheContractIsFound(t *testing.T) {
	for fault, check := range map[string]string{
		"registered twice":              "each directory shows it once",
		"shown after its end":           "each directory shows it once",
		"last seen before its begin":    "its snapshot is complete and valid",
		"a summary that is no sentence": "its snapshot is complete and valid",
		"a command that has no example": "it carries out each of its commands, which is recorded and counted",
		"no record of refused orders":   "an invalid order does not reach it, and is recorded and counted",
		"receives cancelled orders":     "a cancelled order does not reach it",
		"waits longer than its context": "an order ends with its context",
		"one of two orders is refused":  "two concurrent orders are both carried out",
		"shown twice after a reload":    "a reload ends waiting orders and shows it again",
		"no answer after its death":     "its death ends waiting orders",
		"answers after its end":         "a shutdown of the receiver ends waiting orders",
	} {
		t.Run(fault, func(t *testing.T) {
			assert.True(t, fails(t, contractOf(fault), check))
		})
	}
}

// fails runs a check, and reports whether it finds something.
func fails(t *testing.T, c Contract, name string) bool {
	r := &recorder{TB: t}
	for _, check := range checks {
		if check.name != name {
			continue
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			check.run(c.begin(r, 100*time.Millisecond)) // a short patience, because the condition never becomes true
		}()
		<-done
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}
