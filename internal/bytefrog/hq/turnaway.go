// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package hq

import (
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// Unstarted is the control connection of an agent that was not started.
type Unstarted interface {
	// Send sends a message to the agent.
	Send(m bytefrog.Message) error
	// Next returns the agent's next message, at the latest at a time. Any error ends the wait.
	Next(until time.Time) (bytefrog.Message, error)
}

// TurnAway refuses an agent that was not started. An error message or a close before start would
// end its program in front of its main. So:
//
//  1. The agent gets a configuration with which it traces nothing and opens no data connection.
//  2. It is started, and its program runs on untraced.
//  3. When the agent can read an error message, it gets one with the text. Its first class
//     report shows that it can; without one it gets the message after the time ready.
//
// The caller reads the connection until the agent closes it. The error is that of a message that
// could not be sent.
func TurnAway(agent Unstarted, version uint8, text string, ready time.Duration) error {
	configuration, err := tracingNothing(version)
	if err != nil {
		return err
	}
	if err := agent.Send(configuration); err != nil {
		return err
	}
	if err := agent.Send(bytefrog.Command{Of: bytefrog.TypeStart}); err != nil {
		return err
	}
	for until := time.Now().Add(ready); ; {
		m, err := agent.Next(until)
		if _, reports := m.(bytefrog.ClassReport); reports || err != nil {
			break
		}
	}
	return agent.Send(bytefrog.ErrorMessage{Text: text})
}

// tracingNothing is a configuration with which an agent traces nothing and opens no data
// connection. No run has the ID 0.
func tracingNothing(version uint8) (bytefrog.Message, error) {
	return bytefrog.AgentConfiguration{
		HeartbeatInterval:  100 * time.Millisecond,
		Exclusions:         []string{""},
		Inclusions:         []string{},
		BufferMemoryBudget: 64 << 10,
		QueueRetryCount:    1,
	}.Message(version)
}
