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
	case "seen before it began":
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
	if m.fault != "told what nobody wants" && ctx.Err() != nil {
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
		return agentcontrol.Answer{}, errors.New("it is left")
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
	if m.fault == "one of two is turned away" && second {
		return agentcontrol.Answer{}, errors.New("it is asked for already")
	}
	if !silent {
		return agentcontrol.Answer{Message: "done"}, nil
	}
	if m.fault == "its loss is silence" {
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

func (m *model) Told(r agentcontrol.Record) {
	if m.fault == "no record of what is refused" && r.Err != nil {
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
			if fault == "registered twice" || fault == "comes back as two" && begun == 2 {
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
				Silence: func() { m.mu.Lock(); m.silent = true; m.mu.Unlock() },
				Told:    func() int { m.mu.Lock(); defer m.mu.Unlock(); return m.told },
				Records: func() []map[string]any { m.mu.Lock(); defer m.mu.Unlock(); return m.records },
			}
		},
	}
}

func TestAModelKeepsTheContract(t *testing.T) { contractOf("").Run(t) }

// recorder is a test that fails without failing the one that it is of.
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
func TestWhoeverBreaksTheContractIsFound(t *testing.T) {
	for fault, check := range map[string]string{
		"registered twice":              "it is shown once wherever that is configured",
		"shown after its end":           "it is shown once wherever that is configured",
		"seen before it began":          "what is known of it can be understood",
		"a summary that is no sentence": "what is known of it can be understood",
		"a command that has no example": "it does all that it can be told, which is recorded and counted",
		"no record of what is refused":  "it is told nothing that is badly written, which is recorded and counted",
		"told what nobody wants":        "it is told nothing that nobody wants any more",
		"waits longer than its context": "nobody waits for it longer than they want to",
		"one of two is turned away":     "two orders at once are both carried out",
		"comes back as two":             "a reload answers who waits and shows it again",
		"its loss is silence":           "whoever waits for it hears that it has died",
		"answers after its end":         "whoever waits for it hears that the receiver is shut down",
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
			check.run(c.begin(r, 100*time.Millisecond)) // it is waited for what never comes
		}()
		<-done
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}
