// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import "fmt"

// Settings that bound connections and runs.
const (
	settingMaxConnections = "limits.max_connections"
	settingPerAddress     = "limits.max_connections_per_address"
	settingMaxRuns        = "limits.max_runs"
	settingMaxRunMemory   = "limits.max_run_memory"
)

// limitError reports that a limit is reached.
type limitError struct {
	setting string
	limit   int
}

func (e *limitError) Error() string { return fmt.Sprintf("%s is reached (%d)", e.setting, e.limit) }
