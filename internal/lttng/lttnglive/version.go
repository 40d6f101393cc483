// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import "fmt"

// Versions of the protocol are those of lttng-tools. Both sides say theirs, and
// speak the same major with the lower of the two minors.
const (
	// Major is the only major version there is.
	Major = 2
	// MinMinor is the minor the protocol began with.
	MinMinor = 4
	// MaxMinor is the newest minor that this package knows: session entries have
	// names of any length and say their trace format.
	MaxMinor = 15

	minorDetach       = 8  // the first that knows "detach session"
	minorTraceFormats = 15 // the first with the new session entries
)

// Version is what one side of a connection says that it speaks.
type Version struct {
	Major, Minor uint32
}

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }
