// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// withAnotherClient monitors all methods of a server, and sends a line as another client.
func withAnotherClient(t *testing.T, line string) *bed {
	t.Helper()
	server := withLambdas(t)
	b := following(t, func(c *Config) {
		watchAll(c)
		c.StateInterval = 10 * time.Millisecond
	}, server).start()
	b.Await("calls of all methods", func() bool { return len(values(b.collect(), "java.method.calls")) == 12 })
	conn, err := net.Dial("tcp", server.endpoint)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = conn.Write([]byte(line + "\n"))
	require.NoError(t, err)
	return b
}

// awaitCalls waits for so many more calls.
func (b *bed) awaitCalls(more float64) {
	b.T.Helper()
	before := sum(values(b.collect(), "java.method.calls"))
	b.Await("more calls", func() bool { return sum(values(b.collect(), "java.method.calls")) > before+more })
}

func TestCommandsSilencedByAnotherClientAreSentAgain(t *testing.T) {
	b := withAnotherClient(t, "reset")
	b.awaitLogged("Another client has connected to the server")
	b.awaitCalls(100)
	assert.EqualValues(t, 1, b.point("foreign_resets"))
	assert.EqualValues(t, 1, b.point("foreign_sessions"))
}

func TestAnotherClientWithoutAResetChangesNothing(t *testing.T) {
	b := withAnotherClient(t, "version")
	b.Await("the other session", func() bool { return b.point("foreign_sessions") == 1 })
	b.awaitCalls(3000)
	assert.Zero(t, b.point("foreign_resets"))
}
