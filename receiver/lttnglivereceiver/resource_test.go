// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/process"
	"github.com/callbraid/callbraid/internal/lttng/sim/synthetic"
)

func TestInvalidUTF8InNamesIsReplaced(t *testing.T) {
	s := synthetic.New("names", "vtid")
	s.Environment = "vpid = 7; procname = \"p\xff\";"
	s.Class("app:h\xfft", "n")
	s.Stream().Packet(10).Event(10, "app:h\xfft", 7, 1)
	recording := s.Recording(1)
	recording.Session.Host, recording.Session.Name = "h\xff", "caf\xe9"
	r := newRelay(t, []*lttnglive.Recording{recording}, lttnglive.RelayOptions{Restart: true})
	b := newBed(t, reading(r.address()))

	record := b.awaitRecords(1)[0]
	assert.Equal(t, "app:h\uFFFDt", record.EventName())
	assert.Equal(t, "app:h\uFFFDt", record.Body().Str())
	for key, want := range map[string]string{
		process.AttributeHostName: "h\uFFFD", process.AttributeSession: "caf\uFFFD", process.AttributeServiceName: "unknown_service:p\uFFFD",
	} {
		got, _ := record.resource.Attributes().Get(key)
		assert.Equal(t, want, got.Str(), key)
	}
}
