// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import "fmt"

// Versions of the protocol are those of lttng-tools. Both sides send theirs, and use the same major version and the
// lower of the two minor versions.
const (
	// Major is the only major version.
	Major = 2
	// MinMinor is the first minor version with the protocol.
	MinMinor = 4
	// MaxMinor is the newest minor version that this package supports: its session entries have names of any length
	// and a trace format.
	MaxMinor = 15

	minorDetach       = 8  // the first version with "detach session"
	minorTraceFormats = 15 // the first version with the new session entries
)

// Version is the version of one side of a connection.
type Version struct {
	Major, Minor uint32
}

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }
