// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A process of the ID that a server says may be another one here, where the server is behind
// the port of a container.
func TestAServerIsHereWhereAProcessOfItsIDRunsJava(t *testing.T) {
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
	// Its arguments are there a moment after it has begun.
	require.Eventually(t, func() bool { return isLocal(here, pid) }, time.Minute, time.Millisecond)
	assert.False(t, isLocal(there, pid), "it was reached over a network")
	assert.False(t, isLocal(nil, pid))
	assert.False(t, isLocal(here, int64(os.Getpid())), "this is no Java")
	for _, pid := range []int64{-1, 0, maxPID, maxPID + 1} {
		assert.False(t, isLocal(here, pid))
	}
}
