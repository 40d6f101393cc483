// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"errors"
	"net"

	"github.com/callbraid/callbraid/internal/bytefrog/hq"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/session"
)

// Reasons of refusals.
const (
	refusedConnections = "max_connections"
	refusedAddress     = "max_connections_per_address"
	refusedUnheard     = "unheard"
	refusedRuns        = "max_runs"
	refusedVersion     = "version"
	refusedUnknownRun  = "unknown_run"
	refusedRunFull     = "data_connections"
	refusedOtherHost   = "other_host"
	refusedShutdown    = "shutdown"
	refusedBadData     = "bad_data"
	refusedOther       = "other"
)

// refusedByLimit has the reasons for settings that bound connections and runs.
var refusedByLimit = map[string]string{
	settingMaxConnections: refusedConnections,
	settingPerAddress:     refusedAddress,
	settingMaxRuns:        refusedRuns,
}

// reasonOf returns the reason of a refusal with an error.
func reasonOf(err error) string {
	var limit *limitError
	var full *session.TooManyConnections
	var stranger *session.OtherHostError
	var ended session.Ending
	switch {
	case errors.As(err, &stranger):
		return refusedOtherHost
	case errors.As(err, &full):
		return refusedRunFull
	case errors.As(err, &limit):
		return refusedByLimit[limit.setting]
	case errors.Is(err, errClosed), errors.As(err, &ended) && ended.Cause == callevent.CauseShutdown:
		return refusedShutdown
	case errors.Is(err, session.ErrRunOver):
		return refusedUnknownRun
	default:
		return refusedOther
	}
}

// refuse sends the reason to a peer, and closes the connection.
func (r *bytefrogReceiver) refuse(conn net.Conn, reason, text string) {
	r.env.telemetry.Refused(reason)
	hq.Refuse(conn, text)
	_ = conn.Close()
}
