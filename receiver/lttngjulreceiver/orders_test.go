// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/session"
)

// registered returns an agent that has registered and listed its loggers, and its session.
func (b *bed) registered(domain lttngagent.Domain, loggers ...string) (*testAgent, *session.Session) {
	b.T.Helper()
	before := b.receiver.registrar.registry.agents()
	played := b.register(domain)
	played.expect(lttngagent.RegistrationDone{})
	require.Equal(b.T, lttngagent.List{}, played.next())
	played.list(loggers...)
	for _, a := range b.receiver.registrar.registry.agents() {
		known := false
		for _, other := range before {
			known = known || other == a
		}
		if !known {
			return played, a
		}
	}
	require.Fail(b.T, "the agent is not in the registry")
	return nil, nil
}

// newSlowBed returns a bed whose receiver lists loggers once, and after changes.
func newSlowBed(t *testing.T) *bed {
	t.Helper()
	b := unstartedBed(t, func(c *Config) { c.ListInterval = time.Hour })
	b.receiver.firstPause = time.Hour
	b.Start()
	return b
}

func TestAnAgentGetsOrdersAndIsListedAfterThem(t *testing.T) {
	b := newSlowBed(t)
	played, a := b.registered(lttngagent.Log4j)
	command := enable(t, lttngagent.Log4j, "com.example", "WARN")
	require.True(t, a.Queue(command))
	played.expect(command)
	require.Equal(t, lttngagent.List{}, played.next())
	played.list("com.example")
	assert.Equal(t, []string{"com.example"}, loggersOf(b.awaitRecords(eventAppeared, 1)))

	go b.Shutdown()
	played.expect(lttngagent.Disable{Logger: command.Logger})
	played.awaitClosed()
	assert.False(t, a.Queue(command), "the session has ended")
}

func TestUnsupportedCommandsAreNotSent(t *testing.T) {
	b := newSlowBed(t)
	played, a := b.registered(lttngagent.Python)
	require.True(t, a.Queue(lttngagent.EnableContext{Context: contextOf(t, "shop", "user")}))
	require.Equal(t, lttngagent.List{}, played.next())
	played.list()
	refused := b.awaitRecords(eventRefused, 1)[0]
	assert.Equal(t, "unsupported", refused.attributes[attributeResult])
	assert.NotContains(t, refused.attributes, attributeCode)
	assert.Equal(t, "shop:user", refused.attributes[attributeContext])
	assert.Contains(t, refused.body, "Agent refused: enable context shop:user: enable context cannot be sent: ")
	go b.Shutdown()
	played.awaitClosed()
}

func TestARefusalIsLoggedWithItsMeaningAndNotUndone(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Enable = []EnableRule{{Domain: "jul", Logger: "a"}, {Domain: "jul", Logger: "b"}, {Domain: "jul", Logger: "c"}}
	})
	played := b.register(lttngagent.JUL)
	for _, code := range []lttngagent.Code{lttngagent.Invalid, 77, lttngagent.Success} {
		require.IsType(t, lttngagent.Enable{}, played.next())
		played.answer(code)
	}
	played.expect(lttngagent.RegistrationDone{}, lttngagent.List{})
	refused := b.awaitRecords(eventRefused, 2)
	assert.Equal(t, "Agent refused: enable a: invalid command", refused[0].body)
	assert.Equal(t, "Agent refused: enable b: unknown code 77", refused[1].body)
	assert.Equal(t, "other_code", refused[1].attributes[attributeResult])
	line := b.AwaitLine("An LTTng agent refused a command")
	assert.Equal(t, "enable a", line.ContextMap()["command"])
	assert.Equal(t, "invalid command", line.ContextMap()["answer"])
	assert.Equal(t, eventRegistered, b.records("")[0].event, "the registration is the first record")

	go b.Shutdown()
	played.expect(lttngagent.Disable{Logger: pattern(t, "c")})
	played.awaitClosed()
}

func TestAShutdownReleasesAWaitingApplication(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Enable = []EnableRule{{Domain: "jul", Logger: "a"}, {Domain: "jul", Logger: "b"}}
	})
	played := b.register(lttngagent.JUL)
	require.IsType(t, lttngagent.Enable{}, played.next())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		b.Shutdown()
	}()
	b.Await("the shutdown", b.receiver.env.IsStopping)
	b.Await("the agent gets no more commands", func() bool {
		for _, a := range b.receiver.registrar.registry.agents() {
			if a.Queue() {
				return false
			}
		}
		return true
	})
	played.answer(lttngagent.Success)
	played.expect(lttngagent.RegistrationDone{}, lttngagent.Disable{Logger: pattern(t, "a")})
	played.awaitClosed()
	<-stopped
}

func TestARefusedListDoesNotChangeTheLoggers(t *testing.T) {
	b := newSlowBed(t)
	played, a := b.registered(lttngagent.JUL, "a")
	b.awaitRecords(eventAppeared, 1)
	require.True(t, a.Queue(lttngagent.List{}))
	require.Equal(t, lttngagent.List{}, played.next())
	played.answer(lttngagent.Invalid)
	assert.Equal(t, "Agent refused: list: invalid command", b.awaitRecords(eventRefused, 1)[0].body)
	assert.EqualValues(t, 1, a.Loggers())
	assert.Empty(t, b.records(eventDisappeared))
}
