// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import "fmt"

// ThreadName is what a thread is called from an event on.
type ThreadName struct {
	Name string
	// Time is when it was said, in milliseconds. The name holds for the events after
	// that time, and for those with at least the sequence number From; where that is
	// not known, for those at that time too.
	Time    uint32
	From    uint32
	Unknown bool
}

// ThreadName is what a thread is called at an event: by the last of its names that
// holds, and before all by the first.
func (r *Run) ThreadName(e Event) string {
	name := ""
	for i, n := range r.Threads[e.Thread] {
		byNumber := !n.Unknown && e.Sequence >= n.From
		byTime := e.Time > n.Time || n.Unknown && e.Time == n.Time
		if i == 0 || byNumber || byTime {
			name = n.Name
		}
	}
	return name
}

// connection is what was said on one connection and matters for the names of threads:
// messages with a sequence number, and names.
type connection struct{ said []said }

type said struct {
	isName   bool
	thread   uint16
	name     string
	time     uint32
	sequence uint32
}

// place finds the event from which on each name holds, as docs/architecture.md says:
// by the last number before it and the next two behind it.
func (c *connection) place(threads map[uint16][]ThreadName) error {
	for i, n := range c.said {
		if !n.isName {
			continue
		}
		var before, after []said
		for j := i - 1; j >= 0 && len(before) < 1; j-- {
			if !c.said[j].isName {
				before = append(before, c.said[j])
			} else if c.said[j].thread == n.thread {
				return fmt.Errorf("thread %d has two names and no event between them", n.thread)
			}
		}
		for j := i + 1; j < len(c.said) && len(after) < 2; j++ {
			if !c.said[j].isName {
				after = append(after, c.said[j])
			}
		}
		name := ThreadName{Name: n.name, Time: n.time}
		name.From, name.Unknown = begin(n.time, before, after)
		threads[n.thread] = append(threads[n.thread], name)
	}
	return nil
}

func begin(time uint32, before, after []said) (from uint32, unknown bool) {
	const reach = 8
	isBefore := len(before) == 1 && (before[0].time == time || before[0].time+1 == time)
	isAfter := len(after) > 0 && after[0].time >= time
	between := func(a, b said) uint32 {
		if a.sequence < b.sequence && b.sequence-a.sequence <= reach {
			return b.sequence - a.sequence
		}
		return 0
	}
	if isBefore && isAfter && between(before[0], after[0]) > 0 {
		return before[0].sequence + between(before[0], after[0])/2, false
	}
	if isAfter && len(after) == 2 && between(after[0], after[1]) > 2 {
		return uint32(max(0, int64(after[0].sequence)-int64(between(after[0], after[1]))+1)), false
	}
	if isAfter {
		return uint32(max(0, int64(after[0].sequence)-1)), false
	}
	if isBefore {
		return before[0].sequence + 1, false
	}
	return 0, true
}
