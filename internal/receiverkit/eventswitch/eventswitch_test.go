// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package eventswitch

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDisabledEventsAreOff(t *testing.T) {
	type event struct{ Enabled bool }
	type events struct {
		Gone event `mapstructure:"server.gone"`
		Dump event `mapstructure:"dump"`
	}
	assert.Empty(t, Off(events{event{true}, event{true}}))
	assert.Equal(t, map[string]bool{"server.gone": true}, Off(events{Dump: event{true}}))
}
