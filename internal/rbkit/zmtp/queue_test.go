// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAQueueIsBoundedByMessagesAndByBytes(t *testing.T) {
	messages := newQueue(2, 100)
	require.True(t, messages.put([]byte("a")))
	require.True(t, messages.put([]byte("b")))
	require.False(t, messages.put([]byte("c")))

	bytes := newQueue(100, 3)
	require.True(t, bytes.put([]byte("ab")))
	require.False(t, bytes.put([]byte("cd")))
	require.True(t, bytes.put([]byte("c")))
	taken, ok := bytes.next(nil)
	require.True(t, ok)
	require.Equal(t, [][]byte{[]byte("ab"), []byte("c")}, taken)
	require.True(t, bytes.put([]byte("abcd")), "what is larger than the queue goes into an empty one")
	bytes.end()
	require.False(t, bytes.put(nil))
	_, ok = bytes.next(nil)
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
	require.True(t, q.put([]byte("a")))
	require.False(t, drained())
	_, ok := q.next(nil)
	require.True(t, ok)
	require.False(t, drained(), "it was taken, and not sent")
	q.end()
	require.True(t, drained())
}
