// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// idleConversation is a conversation in which nothing is said, and its other end.
func idleConversation(t *testing.T) (*conversation, net.Conn) {
	t.Helper()
	ours, theirs := net.Pipe()
	c := newConversation(ours, newInventories(mib, nil))
	t.Cleanup(func() {
		c.close()
		_ = theirs.Close()
	})
	return c, theirs
}

// waiting is a wait of an hour that goes on.
func waiting(c *conversation) <-chan error {
	over := make(chan error, 1)
	go func() { over <- c.wait(time.Now().Add(time.Hour)) }()
	return over
}

// awaitIdle waits until a wait goes on.
func awaitIdle(t *testing.T, c *conversation) {
	t.Helper()
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.idle
	}, patience, time.Millisecond)
}

func awaitOver(t *testing.T, over <-chan error) error {
	t.Helper()
	select {
	case err := <-over:
		return err
	case <-time.After(patience):
		require.Fail(t, "the wait goes on")
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
	require.NoError(t, awaitOver(t, over), "the one that goes on")
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
	assert.ErrorAs(t, awaitOver(t, over), new(unexpectedDataError))
}

// TestACommandIsOneWriteHoweverLong: Python's agent takes what it reads at once for the
// whole.
func TestACommandIsOneWriteHoweverLong(t *testing.T) {
	filter, err := lttngagent.ParseFilter(strings.Repeat("x", 30_000))
	require.NoError(t, err)
	long := enable(t, lttngagent.JUL, strings.Repeat("a", 200), "FINE")
	long.Filter = filter
	for _, command := range []lttngagent.Command{
		lttngagent.List{}, lttngagent.RegistrationDone{}, enable(t, lttngagent.JUL, "*", ""), long,
		lttngagent.Disable{Logger: long.Logger}, lttngagent.EnableContext{Context: contextOf(t, "shop", "user")},
	} {
		c, theirs := idleConversation(t)
		c.agent = lttngagent.Agent{Dialect: lttngagent.V2, Domain: lttngagent.JUL}
		whole, err := c.agent.AppendCommand(nil, command)
		require.NoError(t, err)
		told := make(chan error, 1)
		go func() { told <- c.send(command, patience) }()
		// A read from such a connection gives one write at most.
		got := make([]byte, 2*len(whole))
		n, err := theirs.Read(got)
		require.NoError(t, err)
		require.Equal(t, whole, got[:n])
		require.NoError(t, <-told)
	}
}

func TestADeadlineShortensTheCurrentAndLaterOperations(t *testing.T) {
	c, _ := idleConversation(t)
	c.agent = lttngagent.Agent{Dialect: lttngagent.V2, Domain: lttngagent.JUL}
	over := waiting(c)
	awaitIdle(t, c)
	c.finishBy(time.Now())
	require.NoError(t, awaitOver(t, over), "what goes on")
	require.NoError(t, awaitOver(t, waiting(c)), "a wait that follows")
	assert.ErrorAs(t, c.send(lttngagent.List{}, time.Hour), new(*timeoutError), "a command that follows")
}
