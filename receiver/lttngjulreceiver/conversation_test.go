// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// idleConversation is a conversation in which nothing is said, and its other end.
func idleConversation(t *testing.T) (*conversation, net.Conn) {
	t.Helper()
	ours, theirs := net.Pipe()
	c := newConversation(ours, &budget{limit: mib})
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

func TestAWaitEndsWhenItsTimeIsOver(t *testing.T) {
	c, _ := idleConversation(t)
	require.NoError(t, c.wait(time.Now().Add(time.Millisecond)))
	require.NoError(t, c.wait(time.Now().Add(-time.Hour)))
}

func TestAWakeEndsTheWaitThatGoesOnOrElseTheNext(t *testing.T) {
	c, _ := idleConversation(t)
	c.wake()
	require.NoError(t, awaitOver(t, waiting(c)), "the next")
	over := waiting(c)
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.idle
	}, patience, time.Millisecond)
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
	assert.ErrorIs(t, awaitOver(t, over), io.EOF)
}

func TestWhatNobodyAskedForEndsAWait(t *testing.T) {
	c, theirs := idleConversation(t)
	over := waiting(c)
	_, err := theirs.Write([]byte{1})
	require.NoError(t, err)
	assert.ErrorAs(t, awaitOver(t, over), new(unaskedError))
}
