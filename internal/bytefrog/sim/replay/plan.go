// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// item is one step of a replay: a piece of data that fills a buffer, or a report on the control connection.
type item struct {
	at     time.Duration // since the first data hello of the capture
	piece  []byte        // whole messages
	events int           // numbered messages in piece
	top    uint32        // the highest number in piece plus 1; 0 if there is none
	report bytefrog.Message
}

// plan divides a recording into pieces of at most size bytes, in order of arrival.
func plan(r *Recording, size int, o Options) []item {
	var pieces []item
	for _, c := range r.data {
		pieces = append(pieces, chop(c, size, r.begin)...)
	}
	slices.SortStableFunc(pieces, func(a, b item) int { return cmp.Compare(a.at, b.at) })
	if o.Shuffle {
		shuffle(pieces, o.Seed, o.Window)
	}
	return withReports(pieces, r)
}

// chop divides a connection into pieces. A message longer than size is a piece of its own, and so is a longer group of
// neighbours. The name of a thread stays between the numbered messages around it, because they show where it becomes
// valid.
func chop(c connection, size int, begin time.Duration) []item {
	var pieces []item
	var last item
	arrivals := c.arrivals
	end := 0
	flush := func() {
		if len(last.piece) > 0 {
			for len(arrivals) > 1 && arrivals[0].end < end {
				arrivals = arrivals[1:]
			}
			if len(arrivals) > 0 {
				last.at = max(0, arrivals[0].at-begin)
			}
			pieces = append(pieces, last)
		}
		last = item{}
	}
	for _, group := range neighbours(c.bytes) {
		if len(last.piece)+group.length > size {
			flush()
		}
		end += group.length
		last.piece = c.bytes[end-len(last.piece)-group.length : end]
		last.events += group.events
		last.top = max(last.top, group.top)
	}
	flush()
	return pieces
}

// neighbourhood is a group of messages that stay together.
type neighbourhood struct {
	length, events int
	top            uint32
}

// behindName is the number of numbered messages after a thread name that stay together with it.
const behindName = 2

// neighbours divides b into groups: most messages are alone.
func neighbours(b []byte) []neighbourhood {
	var groups []neighbourhood
	// since is the group of the last numbered message, which the next name joins. owed is the number of messages that
	// still belong to the last name.
	since, owed := 0, 0
	each(b, func(m message) {
		isName := bytefrog.MessageType(m.bytes[0]) == bytefrog.TypeMapThreadName
		if owed == 0 && !isName {
			groups = append(groups, neighbourhood{})
		}
		if isName {
			groups = join(groups, since)
			owed = behindName
		} else if m.numbered && owed > 0 {
			owed--
		}
		g := &groups[len(groups)-1]
		g.length += len(m.bytes)
		if m.numbered {
			g.events++
			g.top = max(g.top, m.sequence+1)
			since = len(groups) - 1
		}
	})
	return groups
}

// join merges all groups from index first on.
func join(groups []neighbourhood, first int) []neighbourhood {
	if len(groups) == 0 {
		return []neighbourhood{{}}
	}
	for _, g := range groups[first+1:] {
		into := &groups[first]
		into.length += g.length
		into.events += g.events
		into.top = max(into.top, g.top)
	}
	return groups[:first+1]
}

// shuffle changes the order of the pieces, each within its window of pieces. The times of arrival keep their positions.
func shuffle(pieces []item, seed uint64, window int) {
	random := rand.New(rand.NewPCG(seed, 0))
	if window <= 0 {
		window = len(pieces)
	}
	for part := range slices.Chunk(pieces, max(1, window)) {
		random.Shuffle(len(part), func(i, j int) {
			part[i], part[j] = part[j], part[i]
			part[i].at, part[j].at = part[j].at, part[i].at
		})
	}
}

// withReports inserts the control messages: in order of time, and a data break before every piece with later events.
func withReports(pieces []item, r *Recording) []item {
	places := make([][]item, len(pieces)+1)
	for _, c := range r.control {
		at := max(0, c.at-r.begin)
		place, _ := slices.BinarySearchFunc(pieces, at, func(p item, at time.Duration) int { return cmp.Compare(p.at, at) })
		if b, isBreak := c.message.(bytefrog.DataBreak); isBreak {
			first := slices.IndexFunc(pieces, func(p item) bool { return p.top > b.Sequence })
			if first >= 0 {
				place = min(place, first)
			}
		}
		places[place] = append(places[place], item{at: at, report: c.message})
	}
	items := make([]item, 0, len(pieces)+len(r.control))
	for i, reports := range places {
		items = append(items, reports...)
		if i < len(pieces) {
			items = append(items, pieces[i])
		}
	}
	return items
}

// split separates the events before a number. before has them with all names of their pieces, after has the rest.
func split(items []item, number uint32) (before, after []item) {
	for _, it := range items {
		if it.report != nil {
			after = append(after, it)
			continue
		}
		early, late := item{at: it.at}, item{at: it.at}
		each(it.piece, func(m message) {
			if m.numbered && m.sequence >= number {
				late.append(m)
			} else {
				early.append(m)
			}
		})
		if early.events == 0 {
			after = append(after, it)
			continue
		}
		before = append(before, early)
		if late.events > 0 {
			after = append(after, late)
		}
	}
	return before, after
}

// leaveOut removes the events before a number; names stay.
func leaveOut(items []item, number uint32) []item {
	var kept []item
	for _, it := range items {
		if it.report == nil {
			rest := item{at: it.at}
			each(it.piece, func(m message) {
				if !m.numbered || m.sequence >= number {
					rest.append(m)
				}
			})
			it = rest
		}
		if it.report != nil || len(it.piece) > 0 {
			kept = append(kept, it)
		}
	}
	return kept
}

func (it *item) append(m message) {
	it.piece = append(it.piece, m.bytes...)
	if m.numbered {
		it.events++
		it.top = max(it.top, m.sequence+1)
	}
}
