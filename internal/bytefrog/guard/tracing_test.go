// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// tracingEvents are what can happen to an agent, by name.
func tracingEvents() map[string]func(r *tracing) {
	return map[string]func(r *tracing){
		"ready":        func(r *tracing) { r.ready() },
		"want":         func(r *tracing) { r.want(wantedForStall) },
		"want other":   func(r *tracing) { r.want(wantedByCollector) },
		"unwant":       func(r *tracing) { r.unwant(wantedForStall) },
		"unwant other": func(r *tracing) { r.unwant(wantedByCollector) },
		"answer":       func(r *tracing) { r.answer(7) },
		"time":         func(r *tracing) { r.askedAt = time.Now().Add(-2 * time.Hour); r.overdue() },
		"pause":        func(r *tracing) { r.pause(true) },
		"unpause":      func(r *tracing) { r.pause(false) },
		"stop":         func(r *tracing) { r.orderStop() },
		"end":          func(r *tracing) { r.end() },
		"leave":        func(r *tracing) { r.leave() },
		"release":      func(r *tracing) { r.release() },
		"lose":         func(r *tracing) { r.lose() },
	}
}

func TestWhatAnAgentIsTold(t *testing.T) {
	events := tracingEvents()
	for _, c := range []struct{ name, events, told string }{
		{"an agent that is suspended and goes on", "ready, want, answer, unwant", "suspend unsuspend"},
		{"nothing before it takes orders", "want, pause, time", ""},
		{"what is wanted before it takes orders", "want, ready", "suspend"},
		{"it goes on when the last reason has gone", "ready, want, want other, answer, unwant, unwant other", "suspend unsuspend"},
		{"not before it has answered", "ready, want, unwant", "suspend"},
		{"when it answers though nobody wants it any more", "ready, want, unwant, answer", "suspend unsuspend"},
		{"one that never answers goes on after its time", "ready, want, unwant, time", "suspend unsuspend"},
		{"its time is over while it is wanted", "ready, want, time, unwant", "suspend unsuspend"},
		{"again", "ready, want, answer, unwant, want", "suspend unsuspend suspend"},
		{"a break that nobody asked for", "ready, answer, want, unwant", "suspend"},
		{"nothing when tracing ends", "ready, end, want, unwant, pause", ""},
		{"a pause that was ordered before it takes orders", "pause, want, ready, answer, unwant", "suspend unsuspend pause"},
		{"a pause that was taken back by then", "pause, unpause, ready", ""},
		{"stop", "ready, stop, stop, want, pause", "stop"},
		{"stop that was ordered before it takes orders", "stop, want, pause, ready", "stop"},
		{"one that is left runs, and is not paused any more", "ready, pause, leave, pause, answer, pause", "pause unpause suspend"},
		{"one that is told error runs", "ready, pause, release, pause, want", "pause unpause"},
		{"what a lost collector had ordered is taken back", "ready, pause, want other, answer, lose", "pause unpause suspend unsuspend"},
		{"also where it could not be told yet", "pause, want other, stop, lose, ready", ""},
		{"but not that tracing has ended", "ready, stop, lose, ready, want", "stop"},
		{"one that is suspended is not paused before it traces again", "ready, want, pause, answer, unwant", "suspend unsuspend pause"},
		{"one that is paused goes on before it is suspended", "ready, pause, want, answer, unwant", "pause unpause suspend unsuspend pause"},
		{"a pause of one that is suspended, taken back", "ready, want, pause, unpause, answer, unwant", "suspend unsuspend"},
		{"paused once", "ready, pause, pause, unpause, unpause", "pause unpause"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var told []string
			r := &tracing{
				tell: func(of bytefrog.MessageType) { told = append(told, of.String()) },
				news: func() {}, patience: time.Hour,
			}
			for event := range strings.SplitSeq(c.events, ", ") {
				events[event](r)
			}
			assert.Equal(t, c.told, strings.Join(told, " "))
		})
	}
}

// The agent ends its tracing when it reads an order that does not fit its mode: it can be
// suspended and paused while it traces only, and taken back from just that mode.
func TestNoOrderEndsTracingByMistake(t *testing.T) {
	events := tracingEvents()
	names := slices.Sorted(maps.Keys(events))
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		mode := bytefrog.TypeStart
		var happened []string
		r := &tracing{news: func() {}, patience: time.Hour, tell: func(of bytefrog.MessageType) {
			fits := map[bytefrog.MessageType]bytefrog.MessageType{
				bytefrog.TypeSuspend: bytefrog.TypeStart, bytefrog.TypeUnsuspend: bytefrog.TypeSuspend,
				bytefrog.TypePause: bytefrog.TypeStart, bytefrog.TypeUnpause: bytefrog.TypePause,
			}
			if in, has := fits[of]; has {
				require.Equal(t, in.String(), mode.String(), "told %v after %v", of, happened)
			}
			switch mode = of; of {
			case bytefrog.TypeUnsuspend, bytefrog.TypeUnpause:
				mode = bytefrog.TypeStart
			}
		}}
		for range 30 {
			name := names[random.IntN(len(names))]
			happened = append(happened, name)
			events[name](r)
		}
	}
}
