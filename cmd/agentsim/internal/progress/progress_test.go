// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

func TestANumberThatDoesNotChangeHasFewLines(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "lines"))
	require.NoError(t, err)
	defer out.Close()
	synctest.Test(t, func(t *testing.T) {
		p := progress.New(out, "counted", "calls", 1000)
		begin := time.Now()
		p.Start(func() uint64 {
			if time.Since(begin) < 3*time.Second {
				return 250
			}
			return 500
		})
		time.Sleep(25 * time.Second)
		p.Stop()
	})
	lines, err := os.ReadFile(out.Name())
	require.NoError(t, err)
	assert.Equal(t, `counted: 250 of 1,000 calls (25%), 125/s
counted: 500 of 1,000 calls (50%), 125/s
counted: 500 of 1,000 calls (50%), 0/s
counted: 500 of 1,000 calls (50%), 0/s
`, string(lines))
}
