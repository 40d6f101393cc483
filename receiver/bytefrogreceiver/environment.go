// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"crypto/rand"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/receiverkit"
)

// environment is what all runs share.
type environment struct {
	*receiverkit.Kit
	config    *Config
	telemetry *telemetry
	registry  *registry
	hooks

	// The fields below exist from Start on.
	run         *receiverkit.Run
	logs        *logSink
	metrics     *metricsLoop
	lingering   *lingering
	connections *connectionMemory
}

// hooks are the settings of tests.
type hooks struct {
	newStreamID func() (callevent.StreamID, error)
	timing      timing
}

func defaultHooks() hooks { return hooks{newStreamID: randomStreamID, timing: defaultTiming()} }

func randomStreamID() (id callevent.StreamID, err error) {
	for id.IsZero() && err == nil {
		_, err = rand.Read(id[:])
	}
	return id, err
}
