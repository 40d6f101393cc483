// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"crypto/rand"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
)

// environment is what all runs share.
type environment struct {
	config *Config
	// eventsOff are the log records that are switched off, by their event names.
	eventsOff map[string]bool
	build     component.BuildInfo
	logger    *zap.Logger
	telemetry *telemetry
	observer  *receiverhelper.ObsReport
	registry  *registry
	lingering *lingering
	// traces and logs are nil where no pipeline takes them.
	traces  consumer.Traces
	logs    *logSink
	metrics *metricsLoop
	// agents is where agents are shown and steered, if it is anywhere; receiver is the
	// receiver's ID.
	agents   agentcontrol.Directories
	receiver string
	// memory is what runs, queues and connections take theirs from.
	memory      *budget.Group
	connections *connectionMemory
	// ctx is cancelled when the time of the shutdown is over.
	ctx context.Context
	// unpaired warns once that no stack_pairing follows; nil: expect_pairing is off.
	unpaired func()
	hooks
}

// hooks are what tests set.
type hooks struct {
	now         func() time.Time
	newStreamID func() (callevent.StreamID, error)
	timing      timing
}

func defaultHooks() hooks {
	return hooks{now: time.Now, newStreamID: randomStreamID, timing: defaultTiming()}
}

func randomStreamID() (id callevent.StreamID, err error) {
	for id.IsZero() && err == nil {
		_, err = rand.Read(id[:])
	}
	return id, err
}
