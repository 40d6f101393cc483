// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/internal/testkit"
)

// idleConversation returns a conversation without messages, and the peer's end.
func idleConversation(t *testing.T) (*conversation, net.Conn) {
	t.Helper()
	ours, theirs := net.Pipe()
	c := newConversation(ours, newNameMemory(1<<20, nil))
	t.Cleanup(func() {
		c.close()
		_ = theirs.Close()
	})
	return c, theirs
}

// patience bounds the wait for a condition.
const patience = time.Minute

func enable(t *testing.T, logger string) lttngagent.Enable {
	t.Helper()
	pattern, err := lttngagent.ParsePattern(logger)
	require.NoError(t, err)
	return lttngagent.Enable{Logger: pattern}
}

// waiting begins a wait of an hour.
func waiting(c *conversation) <-chan error {
	over := make(chan error, 1)
	go func() { over <- c.wait(time.Now().Add(time.Hour)) }()
	return over
}

// awaitIdle waits until the conversation waits.
func awaitIdle(t *testing.T, c *conversation) {
	t.Helper()
	require.True(t, testkit.Happens(func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.idle
	}))
}

func awaitOver(t *testing.T, over <-chan error) error {
	t.Helper()
	select {
	case err := <-over:
		return err
	case <-time.After(patience):
		require.Fail(t, "the wait has not ended")
		return nil
	}
}

func TestAWaitEndsAfterItsTime(t *testing.T) {
	c, _ := idleConversation(t)
	require.NoError(t, c.wait(time.Now().Add(time.Millisecond)))
	require.NoError(t, c.wait(time.Now().Add(-time.Hour)))
}

func TestAWakeEndsTheCurrentWaitOrElseTheNext(t *testing.T) {
	c, _ := idleConversation(t)
	c.wake()
	require.NoError(t, awaitOver(t, waiting(c)), "the next")
	over := waiting(c)
	awaitIdle(t, c)
	select {
	case <-over:
		require.Fail(t, "one wake ends one wait")
	default:
	}
	c.wake()
	require.NoError(t, awaitOver(t, over), "the current wait")
}

func TestAWaitEndsWithTheConnection(t *testing.T) {
	c, theirs := idleConversation(t)
	over := waiting(c)
	require.NoError(t, theirs.Close())
	assert.ErrorIs(t, awaitOver(t, over), errAgentClosed)
}

func TestUnexpectedDataEndsAWait(t *testing.T) {
	c, theirs := idleConversation(t)
	over := waiting(c)
	_, err := theirs.Write([]byte{1})
	require.NoError(t, err)
	assert.ErrorAs(t, awaitOver(t, over), new(UnexpectedDataError))
}

// Python's agent expects a whole command in one read.
func TestALongCommandIsOneWrite(t *testing.T) {
	filter, err := lttngagent.ParseFilter(strings.Repeat("x", 30_000))
	require.NoError(t, err)
	long := enable(t, strings.Repeat("a", 200))
	long.Filter = filter
	context, err := lttngagent.NewContext("shop", "user")
	require.NoError(t, err)
	for _, command := range []lttngagent.Command{
		lttngagent.List{}, lttngagent.RegistrationDone{}, enable(t, "*"), long,
		lttngagent.Disable{Logger: long.Logger}, lttngagent.EnableContext{Context: context},
	} {
		c, theirs := idleConversation(t)
		c.agent = lttngagent.Agent{Dialect: lttngagent.V2, Domain: lttngagent.JUL}
		whole, err := c.agent.AppendCommand(nil, command)
		require.NoError(t, err)
		sent := make(chan error, 1)
		go func() { sent <- c.send(command, patience) }()
		// A read from such a connection gives one write at most.
		got := make([]byte, 2*len(whole))
		n, err := theirs.Read(got)
		require.NoError(t, err)
		require.Equal(t, whole, got[:n])
		require.NoError(t, <-sent)
	}
}

func TestADeadlineShortensTheCurrentAndLaterOperations(t *testing.T) {
	c, _ := idleConversation(t)
	c.agent = lttngagent.Agent{Dialect: lttngagent.V2, Domain: lttngagent.JUL}
	over := waiting(c)
	awaitIdle(t, c)
	c.finishBy(time.Now())
	require.NoError(t, awaitOver(t, over), "the current wait")
	require.NoError(t, awaitOver(t, waiting(c)), "a wait that follows")
	assert.ErrorAs(t, c.send(lttngagent.List{}, time.Hour), new(*TimeoutError), "a command that follows")
}
