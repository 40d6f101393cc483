// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

func TestNamesThatAreNoUTF8BecomeSome(t *testing.T) {
	s := newSynthetic("names", "vtid")
	s.environment = "vpid = 7; procname = \"p\xff\";"
	s.class("app:h\xfft", "n")
	s.stream().packet(10).event(10, "app:h\xfft", 7, 1)
	recording := s.recording(1)
	recording.Session.Host, recording.Session.Name = "h\xff", "caf\xe9"
	r := newRelay(t, []*lttnglive.Recording{recording}, lttnglive.RelayOptions{Again: true})
	b := newBed(t, reading(r.address()))

	record := b.awaitRecords(1)[0]
	assert.Equal(t, "app:h\uFFFDt", record.EventName())
	assert.Equal(t, "app:h\uFFFDt", record.Body().Str())
	for key, want := range map[string]string{
		attributeHostName: "h\uFFFD", attributeSession: "caf\uFFFD", attributeServiceName: "unknown_service:p\uFFFD",
	} {
		got, _ := record.resource.Attributes().Get(key)
		assert.Equal(t, want, got.Str(), key)
	}
}
