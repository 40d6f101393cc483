// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
)

func TestAPublishedCaptureArrives(t *testing.T) {
	for name, want := range map[string]struct {
		messages, events, samples int64
		dialect                   rbkit.Dialect
	}{
		"released-30s":   {132, 85542, 993, rbkit.Released},
		"documented-30s": {24, 6193, 6145, rbkit.Documented},
	} {
		t.Run(name, func(t *testing.T) {
			c := openCapture(t, name)
			server := play(t, rbkitserver.Options{Hello: rbkitserver.Hello(c)})
			b := newBed(t, following(server))
			server.replay(c)
			b.Await("messages", func() bool { return b.Counter("messages") >= want.messages })
			b.Shutdown()
			s := b.state()
			assert.Equal(t, want.messages, s.Messages)
			assert.Equal(t, want.events, s.Events)
			assert.Equal(t, want.samples, s.Samples)
			assert.Zero(t, s.Lost)
			assert.Zero(t, b.Counter("bad_messages"))
			assert.Equal(t, want.dialect.String(), b.AwaitLine("Detected the dialect of the server").ContextMap()["dialect"])
			assert.Len(t, b.Records(eventDump), 1)
			assert.Positive(t, b.Traces.SpanCount())
			assert.Positive(t, b.Profiles.SampleCount())
			assert.Positive(t, b.Metrics.DataPointCount())
		})
	}
}
