// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAQueueIsBoundedByMessagesAndByBytes(t *testing.T) {
	messages := newQueue(2, 100)
	require.True(t, messages.enqueue([]byte("a")))
	require.True(t, messages.enqueue([]byte("b")))
	require.False(t, messages.enqueue([]byte("c")))

	bytes := newQueue(100, 3)
	require.True(t, bytes.enqueue([]byte("ab")))
	require.False(t, bytes.enqueue([]byte("cd")))
	require.True(t, bytes.enqueue([]byte("c")))
	taken, ok := bytes.dequeueAll(nil)
	require.True(t, ok)
	require.Equal(t, [][]byte{[]byte("ab"), []byte("c")}, taken)
	require.True(t, bytes.enqueue([]byte("abcd")), "an empty queue accepts a message larger than itself")
	bytes.end()
	require.False(t, bytes.enqueue(nil))
	_, ok = bytes.dequeueAll(nil)
	require.False(t, ok)
}

func TestAQueueIsDrainedWhenItsLastMessagesAreSent(t *testing.T) {
	q := newQueue(10, 10)
	drained := func() (is bool) {
		is = true
		q.drained(func() bool { is = false; return true })
		return is
	}
	require.True(t, drained())
	require.True(t, q.enqueue([]byte("a")))
	require.False(t, drained())
	_, ok := q.dequeueAll(nil)
	require.True(t, ok)
	require.False(t, drained(), "it is not sent yet")
	q.end()
	require.True(t, drained())
}
