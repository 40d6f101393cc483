// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"bytes"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/calltree"
)

func TestAProfileOfCalls(t *testing.T) {
	p := Profile(shop())
	require.NoError(t, p.CheckValid())
	assertGolden(t, "shop.profile.txt", []byte(p.String()))
}

func TestAProfileOfAProfile(t *testing.T) {
	p := Profile(allocations())
	require.NoError(t, p.CheckValid())
	assertGolden(t, "allocations.profile.txt", []byte(p.String()))
}

func TestAProfileOfSamplesHasOneType(t *testing.T) {
	s := allocations()
	s.Kind = calltree.Kind{Type: "samples", Unit: "count"}
	p := Profile(s)
	require.NoError(t, p.CheckValid())
	require.Len(t, p.SampleType, 1)
	assert.Equal(t, []int64{32}, p.Sample[0].Value)
}

func TestAProfileSurvivesItsFile(t *testing.T) {
	s := shop()
	s.Service = hostile
	s.Nodes[0].Function, s.Nodes[0].File = hostile, hostile
	s.Nodes[1].Function = ""
	p := Profile(s)
	var file bytes.Buffer
	require.NoError(t, p.Write(&file))
	read, err := profile.Parse(&file)
	require.NoError(t, err)
	assert.Equal(t, p.String(), read.String())
	assert.Equal(t, Printable(hostile), read.Sample[0].Location[0].Line[0].Function.Name)
	assert.Equal(t, "(no name)", read.Sample[1].Location[0].Line[0].Function.Name)
}

func TestAnEmptyTreeIsAProfile(t *testing.T) {
	p := Profile(calltree.Snapshot{})
	require.NoError(t, p.CheckValid())
	assert.Empty(t, p.Sample)
}
