// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontroltest

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/agentcontrol"
)

// outcomes count orders by command and result.
type outcomes map[[2]string]int64

// send sends an order by the extension, and adds the result.
func (s *steered) send(e Example, want string, all outcomes) {
	s.t.Helper()
	require.Equal(s.t, want, s.host.extension.order(s.agent.ID(), e), "%s %v", e.Command, e.Arguments)
	all[[2]string{e.Command, want}]++
}

// expectCounted expects that the extension has counted each order, and no other.
func (s *steered) expectCounted(all outcomes) {
	s.t.Helper()
	counted := map[string]int64{}
	for what, n := range all {
		command := what[0]
		if what[1] == string(agentcontrol.UnknownCommand) {
			command = "unknown"
		}
		counted[fmt.Sprintf("{command=%s,result=%s,tracer=%s}", command, what[1], s.contract.Type)] += n
	}
	assert.Equal(s.t, counted, s.host.extension.counted())
}

// expectRecorded expects that each order is a log record of its receiver's, and no other.
func (s *steered) expectRecorded(all outcomes) {
	s.t.Helper()
	orders := 0
	for _, n := range all {
		orders += int(n)
	}
	s.await(fmt.Sprintf("%d records", orders), func() bool { return len(s.Records()) >= orders })
	recorded := outcomes{}
	for _, attributes := range s.Records() {
		assert.Equal(s.t, s.agent.ID(), attributes[agentcontrol.AttributeAgent])
		assert.Contains(s.t, attributes[agentcontrol.AttributeBy], "127.0.0.1:")
		recorded[[2]string{fmt.Sprint(attributes[agentcontrol.AttributeCommand]), fmt.Sprint(attributes[agentcontrol.AttributeResult])}]++
	}
	assert.Equal(s.t, all, recorded)
}

func (s *steered) doesAll() {
	var looking sync.WaitGroup
	looking.Go(func() { // while it receives commands, too
		for len(s.host.Agents()) > 0 && s.t.Context().Err() == nil {
			s.agent.Snapshot()
		}
	})
	shown, done := map[string]bool{}, map[string]bool{}
	for _, command := range s.agent.Snapshot().Commands {
		shown[command.Name] = true
	}
	all := outcomes{}
	for i, e := range s.contract.Examples {
		before := s.Received()
		s.send(e, agentcontrol.Done, all)
		done[e.Command] = true
		if i < 2 {
			assert.Greater(s.t, s.Received(), before, "%s: the agent received no command", e.Command)
		}
	}
	assert.Equal(s.t, shown, done, "there is an example for each command that is shown")
	s.expectCounted(all)
	s.expectRecorded(all)
	s.Shutdown()
	looking.Wait()
}

func (s *steered) getsNoInvalidOrder() {
	all := outcomes{}
	before := s.Received()
	s.send(Example{Command: "no_such_command"}, string(agentcontrol.UnknownCommand), all)
	seen := map[string]bool{}
	for _, e := range s.contract.Examples {
		if seen[e.Command] {
			continue
		}
		seen[e.Command] = true
		command, err := agentcontrol.Find(s.agent.Snapshot().Commands, e.Command)
		require.NoError(s.t, err)
		for _, bad := range invalidOrders(command, e) {
			s.send(bad, string(agentcontrol.BadArgument), all)
		}
	}
	assert.Equal(s.t, before, s.Received(), "the agent received a command")
	s.expectCounted(all)
	s.expectRecorded(all)
}

// invalidOrders are an example with one error each.
func invalidOrders(c *agentcontrol.Command, e Example) (all []Example) {
	all = append(all, e.with("no_such_argument", "1"))
	for i := range c.Parameters {
		p := &c.Parameters[i]
		if p.Required {
			all = append(all, e.with(p.Name, ""))
		}
		switch p.Kind {
		case agentcontrol.Integer:
			all = append(all, e.with(p.Name, fmt.Sprint(p.Least-1)), e.with(p.Name, fmt.Sprint(p.Most+1)), e.with(p.Name, "many"))
		case agentcontrol.Boolean:
			all = append(all, e.with(p.Name, "perhaps"))
		default:
			all = append(all, e.with(p.Name, "a\x00b"), e.with(p.Name, strings.Repeat("x", max(p.MaxBytes, agentcontrol.DefaultMaxBytes)+1)))
			if len(p.OneOf) > 0 {
				all = append(all, e.with(p.Name, strings.Join(p.OneOf, "")+"x"))
			}
		}
	}
	return all
}

// unwanted is the number of cancelled orders in the check. A select chooses any of several ready
// channels, so one order would not be enough.
const unwanted = 20

func (s *steered) getsNoCancelledOrder() {
	gone, giveUp := context.WithCancel(context.Background())
	giveUp()
	before := s.Received()
	for range unwanted {
		s.expect(s.order(gone, s.contract.Examples[0]), agentcontrol.NoAnswer)
	}
	assert.Equal(s.t, before, s.Received(), "the agent received a command")
}

func (s *steered) doesTwoAtOnce() {
	for _, e := range s.contract.Examples[:2] {
		one, two := s.order(context.Background(), e), s.order(context.Background(), e)
		s.expectDone(one)
		s.expectDone(two)
	}
}
