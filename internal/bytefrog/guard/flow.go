// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"sync"
	"sync/atomic"
	"time"
)

// flow is the data of one agent that waits for a collector, on all connections of a link. It is safe for concurrent use.
type flow struct {
	chunks *chunks
	// writing counts the goroutines that write.
	writing sync.WaitGroup
	// waiting is the number of bytes that wait to be written, and unopened the number of connections that are not open
	// yet. wakeUp is called when either becomes zero, and when the link is lost.
	waiting   atomic.Int64
	unopened  atomic.Int32
	lostBytes atomic.Int64
	wakeUp    func()
	// queue is how many bytes may wait for a data connection before the agent's is not read. rise is how many more are
	// read if the collector reads nothing for too long. When flood bytes wait in total, the agent is suspended.
	queue, rise, flood int64
	// held: the agent is suspended until the collector has read all waiting data.
	held atomic.Bool
	// quiet: the agent has answered suspend, or traces no more. An agent that is held and not quiet still traces as fast
	// as it is read.
	quiet *atomic.Bool
	// progress is when the collector last read data, as time since made.
	made     time.Time
	progress atomic.Int64
}

// isDrained reports whether all connections are open and no data waits.
func (f *flow) isDrained() bool { return f.waiting.Load() == 0 && f.unopened.Load() == 0 }

// isRest reports whether the agent sends only the rest of its data, which is read without waiting.
func (f *flow) isRest() bool { return f.held.Load() && f.quiet.Load() }

// wakeIfDrained wakes the keeper when waiting or unopened has become zero.
func (f *flow) wakeIfDrained() {
	if f.isDrained() {
		f.wakeUp()
	}
}

// progressed notes that the collector has read data, or that no data waited until now.
func (f *flow) progressed() { f.progress.Store(int64(time.Since(f.made))) }

func (f *flow) lastProgress() time.Time { return f.made.Add(time.Duration(f.progress.Load())) }

// isSilent reports whether data waits and the collector has read none for so long.
func (f *flow) isSilent(after time.Duration) bool {
	return !f.isDrained() && time.Since(f.lastProgress()) >= after
}
