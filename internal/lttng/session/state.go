// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// State is the state of a session for its metrics.
type State struct {
	Resource                                 pcommon.Resource
	Opened                                   time.Time
	Streams, Processes, Packets, PacketsLost int64
	Bytes, Events, Discarded                 int64
	// Newest is the time until which events were delivered, in Unix nanoseconds, or 0.
	Newest int64
	// Ended is set if the session has ended.
	Ended bool
}

// counts are counted for the state. Any goroutine may read them.
type counts struct {
	streams                     atomic.Int64
	packets, packetsLost, bytes atomic.Int64
	events, discarded           atomic.Int64
	newest                      atomic.Int64
}

func (c *counts) write(s *State) {
	s.Streams, s.Packets, s.PacketsLost, s.Bytes = c.streams.Load(), c.packets.Load(), c.packetsLost.Load(), c.bytes.Load()
	s.Events, s.Discarded, s.Newest = c.events.Load(), c.discarded.Load(), c.newest.Load()
}
