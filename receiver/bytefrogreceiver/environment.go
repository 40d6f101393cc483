// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"crypto/rand"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/session"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/telemetry"
)

// environment is what all parts of the receiver share.
type environment struct {
	*receiverkit.Kit
	config    *Config
	telemetry *telemetry.Telemetry
	registry  *registry
	hooks

	// The fields below exist from Start on.
	// receiver is the receiver from its start to its shutdown. A run is an agent's.
	receiver    *receiverkit.Run
	sessions    *session.Environment
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
