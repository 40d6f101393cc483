// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
)

// twoCPUs returns a kernel in which the thread 7 of the process 6 runs on CPU 2, CPU 0 is idle, and the thread 8 waits.
func twoCPUs() *kernel {
	k := newKernel(func(*kernelThread) {}, func(*kernelThread) {})
	web := k.threadOf(7, nil, mapping.Number{})
	web.SetName("web")
	k.setProcess(web, 6)
	k.run(2, web)
	k.run(0, k.idleOf(0))
	k.threadOf(8, nil, mapping.Number{}).in(k).state = stateWaiting
	return k
}

func TestTheNextReaderOfAKernelKnowsWhichThreadsRun(t *testing.T) {
	stored, err := json.Marshal(twoCPUs().records())
	require.NoError(t, err)
	var records []ThreadRecord
	require.NoError(t, json.Unmarshal(stored, &records))
	k := newKernel(func(*kernelThread) {}, func(*kernelThread) {})
	k.restore(records)
	require.Len(t, k.running, 3)
	assert.Same(t, k.idle[0], k.running[0])
	assert.Nil(t, k.running[1])
	assert.Same(t, k.threads[7], k.running[2])
	assert.Equal(t, "web", k.running[2].Name())
	assert.EqualValues(t, 6, k.running[2].pid)
	assert.False(t, k.isWaiting(k.threads[7]))
	assert.False(t, k.isWaiting(k.threads[8]), "only running threads are stored")
}

func TestABreakKeepsWhoRunsOnlyIfTheTraceContinuesExactly(t *testing.T) {
	for name, c := range map[string]struct {
		continues   bool
		losses      int
		known, runs bool
	}{
		"the next event follows":          {continues: true, known: true, runs: true},
		"the next event follows a loss":   {continues: true, losses: 1, known: true},
		"events can be read once more":    {},
		"events of a loss can be missing": {losses: 1},
	} {
		t.Run(name, func(t *testing.T) {
			trace := &Trace{shared: &shared{Settings: &Settings{Telemetry: nop{}}}, kernel: twoCPUs(), losses: c.losses}
			k := trace.kernel
			k.noteCall(k.threads[7], &mapping.RulePart{Kind: callevent.KindEnter})
			trace.Break(callevent.CauseBadData, c.continues)
			if !c.known {
				assert.Nil(t, trace.kernel)
				return
			}
			require.Same(t, k, trace.kernel)
			assert.Zero(t, k.threads[7].in(k).open, "the break has ended the call")
			assert.Equal(t, c.runs, k.threads[7].in(k).state == stateRunning)
			assert.Equal(t, c.runs, k.running[2] != nil)
			trace.Begin(ctf.NewTrace())
			assert.Nil(t, trace.kernel, "the metadata is of another domain now")
		})
	}
}
