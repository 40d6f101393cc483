// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/cmd/agentsim/internal/progress"
)

func TestProgressOutsideATerminalIsPlainLines(t *testing.T) {
	for total, want := range map[uint64]string{
		1000: "maven: 250 of 1,000 events (25%), ",
		0:    "maven: 250 events, ",
	} {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		p := progress.New(w, "maven", "events", total)
		var sampled atomic.Bool
		p.Start(func() uint64 {
			sampled.Store(true)
			return 250
		})
		p.Println("a line of its own")
		first := make([]byte, 18)
		_, err = io.ReadFull(r, first)
		require.NoError(t, err)
		assert.Equal(t, "a line of its own\n", string(first))
		line := make([]byte, 100)
		n, err := r.Read(line) // waits for the line
		require.NoError(t, err)
		p.Stop()
		p.Stop()
		require.NoError(t, w.Close())
		assert.True(t, sampled.Load())
		assert.True(t, strings.HasPrefix(string(line[:n]), want), string(line[:n]))
		assert.NotContains(t, string(line[:n]), "\r")
	}
}
