// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrog

import "strconv"

// Mode is the mode of operation that an agent reports in its heartbeats.
type Mode uint8

// The modes of the document.
const (
	ModeInitializing Mode = 'I'
	ModeTracing      Mode = 'T'
	ModePaused       Mode = 'P'
	ModeSuspended    Mode = 'S'
	ModeShuttingDown Mode = 'X'
)

// Known reports whether m is one of the modes of the document.
func (m Mode) Known() bool {
	switch m {
	case ModeInitializing, ModeTracing, ModePaused, ModeSuspended, ModeShuttingDown:
		return true
	default:
		return false
	}
}

// String returns the document's name of the mode in lower case, or "mode N".
func (m Mode) String() string {
	switch m {
	case ModeInitializing:
		return "initializing"
	case ModeTracing:
		return "tracing"
	case ModePaused:
		return "paused"
	case ModeSuspended:
		return "suspended"
	case ModeShuttingDown:
		return "shutting down"
	default:
		return "mode " + strconv.Itoa(int(m))
	}
}
