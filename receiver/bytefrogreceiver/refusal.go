// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"errors"
	"fmt"
	"net"

	"github.com/callbraid/callbraid/internal/bytefrog/hq"
	"github.com/callbraid/callbraid/internal/call/callevent"
)

// Why a connection is refused.
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

// refusedByLimit are the reasons for settings that bound connections.
var refusedByLimit = map[string]string{
	settingMaxConnections:  refusedConnections,
	settingPerAddress:      refusedAddress,
	settingMaxRuns:         refusedRuns,
	settingDataConnections: refusedRunFull,
}

func reasonOf(err error) string {
	var limit *limitError
	var stranger *strangerError
	var ended ending
	switch {
	case errors.As(err, &stranger):
		return refusedOtherHost
	case errors.As(err, &limit):
		return refusedByLimit[limit.setting]
	case errors.Is(err, errClosed), errors.As(err, &ended) && ended.cause == callevent.CauseShutdown:
		return refusedShutdown
	case errors.Is(err, errRunOver):
		return refusedUnknownRun
	default:
		return refusedOther
	}
}

// strangerError: a data connection comes from another host than the run's control
// connection. Run IDs are small numbers, and who guesses one could end the run.
type strangerError struct {
	run       runID
	host, got string
}

func (e *strangerError) Error() string {
	return fmt.Sprintf("expected data connections of run %d from %s, as its control connection, got one from %s", e.run, e.host, e.got)
}

// refuse sends a peer the reason why it is refused, and closes the connection.
func (r *bytefrogReceiver) refuse(conn net.Conn, reason, text string) {
	r.env.telemetry.refused(reason)
	hq.Refuse(conn, text)
	_ = conn.Close()
}
