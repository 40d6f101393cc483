// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit"
)

// If the server is behind the published port of a container, the local process with its ID is another one.
func TestAServerIsLocalIfTheProcessWithItsIDRunsJava(t *testing.T) {
	path, err := exec.LookPath("cat")
	require.NoError(t, err)
	java := exec.Command(path) // it waits for its input
	java.Args = []string{"/usr/lib/jvm/bin/java"}
	input, err := java.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, java.Start())
	t.Cleanup(func() {
		assert.NoError(t, input.Close())
		assert.NoError(t, java.Wait())
	})
	here, there := &net.TCPAddr{IP: net.IPv6loopback}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}
	pid := int64(java.Process.Pid)
	// The arguments are visible a moment after the start.
	require.True(t, testkit.Happens(func() bool { return isLocal(here, pid) }))
	assert.False(t, isLocal(there, pid), "the server is on another machine")
	assert.False(t, isLocal(nil, pid))
	assert.False(t, isLocal(here, int64(os.Getpid())), "this process does not run Java")
	for _, pid := range []int64{-1, 0, maxPID, maxPID + 1} {
		assert.False(t, isLocal(here, pid))
	}
}
