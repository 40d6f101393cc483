// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/sim/capture"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
)

// captureNames are the captures of the live protocol.
var captureNames = []string{"jul1", "julctx", "cygok", "cyg1", "tp1", "meta1"}

func openCapture(t testing.TB, name string) *capture.Capture {
	t.Helper()
	c, err := capture.Open(lttngdata.CaptureFile(t, name))
	require.NoError(t, err)
	return c
}

func TestCapturesDecodeAndEncodeToTheSameBytes(t *testing.T) {
	for _, name := range captureNames {
		t.Run(name, func(t *testing.T) {
			c := openCapture(t, name)
			var requests, replies []byte
			for _, e := range c.Exchanges {
				requests = lttnglive.AppendRequest(requests, e.Request)
				replies = e.Reply.AppendTo(replies, c.Minor)
			}
			// Without assert.Equal, because its failure would print hundreds of kilobytes.
			assert.True(t, string(c.ViewerToRelay) == string(requests), "requests")
			assert.True(t, string(c.RelayToViewer) == string(replies), "replies")
		})
	}
}
