// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/calltree"
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
	require.NoError(t, WriteProfile(&file, s))
	read, err := profile.Parse(&file)
	require.NoError(t, err)
	p.Comments = Notes(s)
	assert.Equal(t, p.String(), read.String())
	assert.Equal(t, Printable(hostile), read.Sample[0].Location[0].Line[0].Function.Name)
	assert.Equal(t, "(no name)", read.Sample[1].Location[0].Line[0].Function.Name)
}

func TestAnEmptyTreeIsAProfile(t *testing.T) {
	p := Profile(calltree.Snapshot{})
	require.NoError(t, p.CheckValid())
	assert.Empty(t, p.Sample)
}

func TestAProfilesFileHasAllSamples(t *testing.T) {
	for seed := range uint64(20) {
		s := calltree.Snapshot{Service: "shop", From: started, To: started.Add(time.Second), Nodes: random(rand.New(rand.NewPCG(seed, 0)), 500)}
		for i := range s.Nodes {
			s.Nodes[i].Line = int64(i % 3)
			if i%5 == 0 {
				s.Nodes[i].Calls, s.Nodes[i].Self = 0, 0 // nothing ended in it
			}
		}
		s.Nodes[0].Self = -1
		var file bytes.Buffer
		require.NoError(t, WriteProfile(&file, s))
		read, err := profile.Parse(&file)
		require.NoError(t, err)
		require.NoError(t, read.CheckValid())
		assert.Equal(t, Profile(s).String(), read.String())
	}
}

func TestAFailedWriteOfAProfileIsAnError(t *testing.T) {
	s := calltree.Snapshot{Service: "shop", Nodes: random(rand.New(rand.NewPCG(1, 0)), 50_000)}
	var whole bytes.Buffer
	require.NoError(t, WriteProfile(&whole, s))
	for _, room := range []int{0, 1000, whole.Len() / 2, whole.Len() - 1} {
		assert.ErrorIs(t, WriteProfile(&full{room}, s), errFull, "%d of %d", room, whole.Len())
	}
}
