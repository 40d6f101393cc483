// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/testkit"
)

// A peer cannot fill the log with refusals.
func TestManyRefusalsAreFewLogLines(t *testing.T) {
	core, lines := observer.New(zap.InfoLevel)
	b := newBed(t, []string{testkit.Address(t)}, func(g *Guard) { g.logger = zap.New(core) })
	const refused = 10 * mostLines
	for range refused {
		conn, err := net.Dial("tcp", b.address)
		require.NoError(t, err)
		write(t, conn, bytefrog.DataHello{Run: 77}.AppendTo(nil))
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
		_, err = io.ReadFull(conn, make([]byte, 1))
		require.NoError(t, err)
		_ = conn.Close()
	}
	logged := lines.FilterMessage("Data connection refused").Len()
	assert.GreaterOrEqual(t, logged, mostLines)
	assert.Less(t, logged, refused/2)
	assert.EqualValues(t, refused, b.guard.counts.Refused.Load())
}
