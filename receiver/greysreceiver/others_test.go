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

func TestCommandsSilencedByAnotherClientAreSentAgain(t *testing.T) {
	server := withLambdas(t)
	b := following(t, func(c *Config) {
		watchAll(c)
		c.StateInterval = 10 * time.Millisecond
	}, server).start()
	b.Await("calls of all methods", func() bool { return len(values(b.collect(), "java.method.calls")) == 12 })
	conn, err := net.Dial("tcp", server.endpoint)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("reset\n"))
	require.NoError(t, err)
	b.awaitLogged("Another client has connected to the server")
	before := sum(values(b.collect(), "java.method.calls"))
	b.Await("more calls", func() bool { return sum(values(b.collect(), "java.method.calls")) > before+100 })
	assert.EqualValues(t, 1, b.point("foreign_resets"))
	assert.EqualValues(t, 1, b.point("foreign_sessions"))
}

func TestAnotherClientWithoutAResetChangesNothing(t *testing.T) {
	server := withLambdas(t)
	b := following(t, func(c *Config) {
		watchAll(c)
		c.StateInterval = 10 * time.Millisecond
	}, server).start()
	b.Await("calls of all methods", func() bool { return len(values(b.collect(), "java.method.calls")) == 12 })
	conn, err := net.Dial("tcp", server.endpoint)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("version\n"))
	require.NoError(t, err)
	b.Await("the other session", func() bool { return b.point("foreign_sessions") == 1 })
	before := sum(values(b.collect(), "java.method.calls"))
	b.Await("many more calls", func() bool { return sum(values(b.collect(), "java.method.calls")) > before+3000 })
	assert.Zero(t, b.point("foreign_resets"))
}
