// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"github.com/callbraid/callbraid/internal/lttng/session"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/telemetry"
)

// openLogs opens the queue of the log records of all sessions, if a pipeline accepts them. While the
// pipeline refuses them and the queue is full, they are dropped, so that spans do not wait for them. While it accepts
// them, or if there is no traces pipeline, a session waits for room: it reads a recording as fast as both pipelines
// accept it, and the relay daemon keeps the rest.
func openLogs(env *session.Environment, run *receiverkit.Run, config *Config, counters *telemetry.Telemetry) {
	overflow := handover.OverflowDropWhileRefused
	if run.Next.Traces == nil {
		overflow = handover.OverflowWait
	}
	env.OpenLogs(run, &config.MappingConfig, &config.Limits.LimitsConfig, &config.BatchesConfig, metadata.ScopeName, overflow, counters.LogRecordsDropped)
}
