// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheNamesThatAreRememberedOfAProcessAreBoundedInBytes(t *testing.T) {
	p := &process{functions: map[string]*function{}, lanes: map[uint64]*lane{}}
	long := strings.Repeat("x", mib)
	for i := range uint64(40) {
		name := fmt.Appendf(nil, "%d%s", i, long)
		f := p.method([]byte("shop.Cart"), name)
		require.Same(t, f, p.method([]byte("shop.Cart"), name))
		l := p.laneOf(i, name)
		require.Same(t, l, p.laneOf(i, name))
	}
	// A thread that is renamed all the time is one.
	for i := range 40 {
		p.laneOf(1<<40, fmt.Appendf(nil, "%d%s", i, long[:mib/2]))
	}
	functions, lanes := 0, 0
	for _, f := range p.functions {
		functions += len(f.Qualified) + len(f.Display)
	}
	for _, l := range p.lanes {
		lanes += len(l.Name)
	}
	assert.Equal(t, functions, p.functionBytes)
	assert.Equal(t, lanes, p.laneBytes)
	assert.LessOrEqual(t, functions, maxNamesBytes)
	assert.LessOrEqual(t, lanes, maxNamesBytes)
	assert.Contains(t, p.lanes, uint64(39), "what was there before the renaming is not forgotten for it")
}
