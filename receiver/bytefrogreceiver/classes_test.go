// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

func TestARunThatTracesNoClassWarnsInTimeAndAtItsEnd(t *testing.T) {
	for _, c := range []struct {
		name  string
		after time.Duration
		sent  []byte
		lines int
	}{
		{"a long run", 0, nil, 1},
		{"a short run", never, nil, 1},
		{"a run that a guard continues, with the names of before", never, namesOne(), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBed(t, quickly, withDataConnections(1), func(b *bed, config *Config) {
				b.timing.Untraced, config.KeepaliveInterval = c.after, 100*time.Millisecond
			})
			a := connect(b, 1)
			a.join().write(c.sent)
			a.control.send(bytefrog.ClassReport{Result: bytefrog.TypeClassIgnored, Class: "demo/Main"})
			lines := func() int { return b.Log.FilterMessageSnippet("No class of the program is traced").Len() }
			b.Await("the report", func() bool { return b.Counter("classes") == 1 })
			if c.after == 0 {
				b.Await("the warning", func() bool { return lines() == 1 })
			} else {
				assert.Zero(t, lines())
			}
			a.finish()
			b.awaitRuns(0)
			assert.Equal(t, c.lines, lines())
		})
	}
}

// The end of a short run says it at the latest, when main is finished.
func TestBatchesHaveTheNumberOfFailedClasses(t *testing.T) {
	b := newBed(t, quickly, withDataConnections(1))
	a := connect(b, 1)
	a.join().write(append(namesOne(), calls(0, 1)...))
	a.control.send(bytefrog.ClassReport{Result: bytefrog.TypeClassTransformFailed, Class: "demo/Main"})
	b.Await("the report", func() bool { return b.Counter("classes") == 1 })
	a.finish()
	b.awaitRuns(0)
	batches := b.Traces.AllTraces()
	last := batches[len(batches)-1]
	assert.Equal(t, map[string]any{"callbraid.missing.classes": int64(1), "callbraid.missing.first": "demo.Main"},
		last.ResourceSpans().At(0).ScopeSpans().At(0).Scope().Attributes().AsRaw())
}
