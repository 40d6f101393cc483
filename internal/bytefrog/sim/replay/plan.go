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

// item is one step of a replay: a piece of data that fills a buffer, or a report on the
// control connection.
type item struct {
	at     time.Duration // since the first data hello of the capture
	piece  []byte        // whole messages
	events int           // numbered messages in piece
	top    uint32        // the highest number in piece plus 1; 0 without any
	report bytefrog.Message
}

// plan lays a recording out in pieces of at most size bytes, in order of arrival.
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

// chop cuts a connection into pieces. A message longer than size is a piece alone, and
// so are neighbours that are longer: the name of a thread stays between the numbered
// messages around it, because they say where it begins.
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

// neighbourhood is a number of messages that are not torn apart.
type neighbourhood struct {
	length, events int
	top            uint32
}

// behindName is how many numbered messages behind the name of a thread stay there.
const behindName = 2

// neighbours takes b apart: most messages are alone.
func neighbours(b []byte) []neighbourhood {
	var groups []neighbourhood
	// since is the first group that a name would keep together: that of the last
	// numbered message. owed is how many messages the last name still claims.
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

// join makes one group of those from number first on.
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

// shuffle puts the pieces out of order, each within its window of pieces. Times of
// arrival stay with the places.
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

// withReports puts the control messages at their place: in order of time, and a data
// break before every piece that has events that follow it.
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

// split takes the numbers before the given one out of items: they stand in before, with
// all names of the pieces they come from, and the rest in after.
func split(items []item, number uint32) (before, after []item) {
	for _, it := range items {
		if it.report != nil {
			after = append(after, it)
			continue
		}
		early, late := item{at: it.at}, item{at: it.at}
		each(it.piece, func(m message) {
			if m.numbered && m.sequence >= number {
				late.add(m)
			} else {
				early.add(m)
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

// leaveOut removes the numbers before the given one; names stay.
func leaveOut(items []item, number uint32) []item {
	var kept []item
	for _, it := range items {
		if it.report == nil {
			rest := item{at: it.at}
			each(it.piece, func(m message) {
				if !m.numbered || m.sequence >= number {
					rest.add(m)
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

func (it *item) add(m message) {
	it.piece = append(it.piece, m.bytes...)
	if m.numbered {
		it.events++
		it.top = max(it.top, m.sequence+1)
	}
}
