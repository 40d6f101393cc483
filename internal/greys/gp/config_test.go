// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAnEmptyFieldHasItsDefault(t *testing.T) {
	defaults := Config{
		Version: 1, MaxFrame: 16 << 20, MaxTolerated: 1 << 20, MaxWaiting: 8 << 20, MaxRequests: 1024,
		Heartbeat: 30 * time.Second, MaxUnanswered: 3, ProbeTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, Location: time.UTC,
	}
	assert.Equal(t, defaults, Config{}.withDefaults())
	assert.Equal(t, defaults, Config{MaxFrame: -1, Heartbeat: -1}.withDefaults())
	assert.Equal(t, MaxMaxFrame, Config{MaxFrame: math.MaxInt}.withDefaults().MaxFrame)
	others := Config{
		Version: 2, Codes: UsualCodes(), MaxFrame: 1, MaxTolerated: 2, MaxWaiting: 3, MaxRequests: 4,
		Heartbeat: 5, MaxUnanswered: 6, ProbeTimeout: 7, WriteTimeout: 8, Location: time.Local,
	}
	assert.Equal(t, others, others.withDefaults())
}
