// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFoldedStacks(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, WriteFolded(&b, shop()))
	assertGolden(t, "shop.folded", b.Bytes())
}

func TestNamesCannotBreakFoldedStacks(t *testing.T) {
	s := shop()
	s.Nodes[1].Function = hostile
	s.Nodes[2].Function = "12 34"
	var b bytes.Buffer
	require.NoError(t, WriteFolded(&b, s))
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	require.Len(t, lines, 6, "a line for each node with self time")
	for _, line := range lines {
		assert.Len(t, strings.Split(line, " "), 2, line)
	}
	assert.Equal(t, 2, strings.Count(lines[2], ";"), lines[2])
	assert.True(t, strings.HasSuffix(lines[2], ";12_34 200"), lines[2])
}

// full is a disk with room for so many bytes.
type full struct{ room int }

var errFull = errors.New("no space left")

func (f *full) Write(b []byte) (int, error) {
	if len(b) > f.room {
		return 0, errFull
	}
	f.room -= len(b)
	return len(b), nil
}

func TestAFailedWriteOfFoldedStacksIsAnError(t *testing.T) {
	assert.ErrorIs(t, WriteFolded(&full{}, shop()), errFull)
	assert.ErrorIs(t, WriteSpeedscope(&full{}, shop()), errFull)
	id, spans := checkout()
	assert.ErrorIs(t, WriteSpeedscopeTrace(&full{}, id, spans), errFull)
}
