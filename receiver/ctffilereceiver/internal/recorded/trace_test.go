// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package recorded

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A session reads files that have grown since the last search. It must not begin again before the next search: that would
// repeat without a pause.
func TestATraceHasNoMoreUntilASearchFindsIt(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "channel0_0")
	write := func(text string) { require.NoError(t, os.WriteFile(name, []byte(text), 0o600)) }
	write("1")
	trace := NewTrace(&Settings{MaxStreams: 1}, Identity{}, dir)
	require.NoError(t, trace.Measure(dir))
	assert.True(t, trace.HasMore(), "new")
	read := func() {
		found, err := packetFiles(dir, 1)
		require.NoError(t, err)
		trace.setEnded(map[string]*file{name: &found[0]})
	}

	write("12")
	read()
	assert.False(t, trace.HasMore(), "read, and not searched since")
	require.NoError(t, trace.Measure(dir))
	assert.False(t, trace.HasMore(), "the same")
	write("123")
	assert.False(t, trace.HasMore(), "not searched yet")
	require.NoError(t, trace.Measure(dir))
	assert.True(t, trace.HasMore(), "grown")
	read()
	assert.False(t, trace.HasMore())
}
