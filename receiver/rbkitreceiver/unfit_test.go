// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/life"
)

func TestCommandsThatDoNotFitTheStateOfAServer(t *testing.T) {
	const startMemory, stopMemory, startCPU, stopCPU = "start_memory_profile", "stop_memory_profile", "start_cpu_profiling", "stop_cpu_profiling"
	names := func(s life.Status) []string { return slices.Sorted(maps.Keys(unfit(&s))) }
	assert.Len(t, names(life.Status{}), len(commands), "the receiver is not connected")
	assert.Empty(t, names(life.Status{Connected: true}), "the state is not known")
	assert.Equal(t, []string{stopCPU, stopMemory}, names(life.Status{Connected: true, Reply: &rbkit.HandshakeReply{}}))
	assert.Equal(t, []string{startCPU, stopMemory}, names(life.Status{Connected: true, Reply: &rbkit.HandshakeReply{CPUProfiling: true}}))
	assert.Equal(t, []string{startMemory, stopCPU}, names(life.Status{Connected: true, Reply: &rbkit.HandshakeReply{ObjectTraceEnabled: true}}))
}
