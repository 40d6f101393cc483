// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tracefile

import (
	"hash/maphash"
	"slices"
	"strconv"
)

// ProcessID identifies a process.
type ProcessID struct{ Service, Instance, Host, PID string }

// Process is a group of tracks.
type Process struct {
	*track
	pid     int32
	threads map[int64]*Thread
	// recent are the threads of the last slices, by the lowest bits of their numbers.
	recent [recentThreads]*Thread
	// lanes are the tracks of slices without a thread.
	lanes    []*track
	counters map[string]*Counter
}

// recentThreads is the number of threads that are found without a look-up. It is a power of two.
const recentThreads = 16

// Thread is a thread of a process: its track, and further ones for slices that do not fit.
type Thread struct {
	id    int64
	lanes []*track
}

// Counter is a track of values.
type Counter struct{ *track }

// Name returns the name of the thread: the first one that is not empty.
func (t *Thread) Name() string { return t.lanes[0].name }

// track is a track of a file.
type track struct {
	lane
	uuid   uint32
	parent *track // nil: a process
	// describe appends the descriptor's fields beside uuid and parent.
	describe func(b []byte) []byte
	name     string
	// described is the number of the last chunk that has the descriptor.
	described uint32
	// used is the number of the last chunk that has items of the track. These are the last slice, the last other item,
	// and the number of events.
	used, slices, others, events uint32
}

// isBusy reports whether the events of the track are a group of the chunk.
func (t *track) isBusy() bool { return t.events >= leastOfGroup }

const (
	// leastSyntheticPID is above all numbers of Linux. Processes whose number is unknown or already in the file have
	// one from here on.
	leastSyntheticPID = 1 << 30
	// lanesOfProcess is the number of tracks for slices without a thread from which they take any place that fits.
	lanesOfProcess = 384
	// maxLanes is the number of tracks of a thread, or of a process for slices without one, that can accept further slices. If
	// none of them accepts a slice, a new track takes the place of the oldest one.
	maxLanes = 512
	// maxCallees is the number of intervals that the lanes together compare with a slice, before it gets a new track.
	maxCallees = maxIntervalsOfLane
	// tracksOfItem is the number of tracks, counters apart, that a slice, a value or a log record needs at most, if all of them
	// are new: those of a process, and of its thread or of its spans.
	tracksOfItem = 2
	// maxTextBytes bounds the memory of the names and descriptions of all tracks.
	maxTextBytes = 16 << 20
	// maxIntervals bounds the memory of all lanes to about 40 MB.
	maxIntervals = 1_000_000
)

// tracks are those of a file.
type tracks struct {
	processes map[ProcessID]*Process
	pids      map[int32]bool
	// nextPID is the next number of a process whose own number is unknown or already in the file.
	nextPID   int32
	all       []*track
	counters  int
	intervals int
	// texts is the size of all keys, names and descriptions.
	texts int
}

func newTracks() tracks {
	return tracks{processes: map[ProcessID]*Process{}, pids: map[int32]bool{}, nextPID: leastSyntheticPID}
}

// keySeed is that of the hashes in keys.
var keySeed = maphash.MakeSeed()

// keyOf returns a text as the key of a map. A long one has a hash in place of its end.
func keyOf(s string) string {
	if len(s) <= maxNameBytes {
		return s
	}
	return s[:maxNameBytes] + strconv.FormatUint(maphash.String(keySeed, s), 16)
}

// key returns the ID as the key of a map.
func (id ProcessID) key() ProcessID {
	return ProcessID{keyOf(id.Service), keyOf(id.Instance), keyOf(id.Host), keyOf(id.PID)}
}

func (id ProcessID) bytes() int {
	return len(id.Service) + len(id.Instance) + len(id.Host) + len(id.PID)
}

func (t *tracks) add(parent *track, name string, describe func([]byte) []byte) *track {
	added := &track{uuid: uint32(len(t.all) + 1), parent: parent, name: name, describe: describe}
	t.all = append(t.all, added)
	return added
}

// Process returns the process of an ID. Details describe it to a person who looks at the file.
func (w *Writer) Process(id ProcessID, details func() string) *Process {
	key := id.key()
	if p, ok := w.tracks.processes[key]; ok {
		return p
	}
	p := &Process{pid: w.tracks.pid(id.PID), threads: map[int64]*Thread{}, counters: map[string]*Counter{}}
	name, description := text(id.Service, maxNameBytes), text(details(), maxValueBytes)
	p.track = w.tracks.add(nil, name, func(b []byte) []byte {
		b, process := begin(b, fieldProcess)
		b = appendUint(b, fieldProcessPID, uint64(p.pid))
		b = process.end(appendString(b, fieldProcessName, name))
		return appendString(b, fieldDescription, description)
	})
	w.tracks.processes[key] = p
	w.tracks.texts += key.bytes() + len(name) + len(description)
	return p
}

// pid returns the number of a process for a file: its own one if no other process has it. Readers would join
// processes with the same number.
func (t *tracks) pid(own string) int32 {
	n, err := strconv.ParseInt(own, 10, 32)
	for pid := int32(n); err == nil && pid > 0 && !t.pids[pid]; {
		t.pids[pid] = true
		return pid
	}
	for t.pids[t.nextPID] {
		t.nextPID++
	}
	t.pids[t.nextPID] = true
	return t.nextPID
}

// Thread returns a thread of the process. Its name is the first one that is not empty.
func (w *Writer) Thread(p *Process, id int64, name string) *Thread {
	recent := &p.recent[uint64(id)%recentThreads]
	t := *recent
	if t == nil || t.id != id {
		var ok bool
		if t, ok = p.threads[id]; !ok {
			t = w.newThread(p, id)
			p.threads[id] = t
		}
		*recent = t
	}
	if own := t.lanes[0]; own.name == "" && name != "" {
		own.name, own.described = text(name, maxNameBytes), 0
		w.tracks.texts += len(own.name)
	}
	return t
}

func (w *Writer) newThread(p *Process, id int64) *Thread {
	var own *track
	own = w.tracks.add(p.track, "", func(b []byte) []byte {
		b, thread := begin(b, fieldThread)
		b = appendUint(b, fieldThreadPID, uint64(p.pid))
		b = appendUint(b, fieldThreadTID, uint64(id))
		if own.name != "" {
			b = appendString(b, fieldThreadName, own.name)
		}
		return thread.end(b)
	})
	return &Thread{id: id, lanes: []*track{own}}
}

// CounterID describes a counter. Its name is unique in the process.
type CounterID struct{ Name, Unit, Description string }

// Units of UCUM that viewers scale.
const (
	unitBytes       = "By"
	unitNanoseconds = "ns"
)

// Counter returns a counter of the process. It is nil if the counter is new, and the file already has as many as allowed.
func (w *Writer) Counter(p *Process, id CounterID) *Counter {
	key := keyOf(id.Name)
	if c, ok := p.counters[key]; ok {
		return c
	}
	if w.tracks.counters >= w.maxCounters {
		return nil
	}
	w.tracks.counters++
	name, unit, description := text(id.Name, maxNameBytes), text(id.Unit, maxNameBytes), text(id.Description, maxNameBytes)
	c := &Counter{w.tracks.add(p.track, name, func(b []byte) []byte {
		b, counter := begin(appendString(b, fieldTrackName, name), fieldCounter)
		switch unit {
		case "":
		case unitBytes:
			b = appendUint(b, fieldUnit, unitSizeBytes)
		case unitNanoseconds:
			b = appendUint(b, fieldUnit, unitTimeNanoseconds)
		default:
			b = appendString(b, fieldUnitName, unit)
		}
		b = counter.end(b)
		if description != "" {
			b = appendString(b, fieldDescription, description)
		}
		return b
	})}
	p.counters[key] = c
	w.tracks.texts += len(key) + len(name) + len(unit) + len(description)
	return c
}

// named describes a track for slices that has only a name.
func named(name string) func([]byte) []byte {
	return func(b []byte) []byte {
		return appendUint(appendString(b, fieldTrackName, name), fieldSiblingMerge, siblingMergeNone)
	}
}

// trackOf returns the track that accepts a slice, and occupies the slice's time there.
func (w *Writer) trackOf(p *Process, t *Thread, x *interval, trace uint64) *track {
	var on *track
	if t != nil {
		on = w.trackOfThread(t, x)
	} else {
		on = w.trackOfProcess(p, x, trace)
	}
	on.trace = trace
	return on
}

// trackOfThread returns the first track of a thread that accepts the slice.
func (w *Writer) trackOfThread(t *Thread, x *interval) *track {
	compared := 0
	for _, on := range t.lanes {
		at, ok := on.fit(x, false)
		if ok {
			w.tracks.intervals += on.put(x, at)
			return on
		}
		if compared += at.last - at.first; compared >= maxCallees {
			break
		}
	}
	on := w.tracks.add(t.lanes[0], "overlapping", named("overlapping"))
	const own = 1
	t.lanes = append(w.tracks.retire(t.lanes, own), on)
	w.overlapping++
	w.tracks.intervals += on.put(x, place{})
	return on
}

// trackOfProcess returns a track for a slice without a thread: one with the slice's callees, or else one whose last
// slice is of the same trace, or else one whose last slice has no caller to wait for.
func (w *Writer) trackOfProcess(p *Process, x *interval, trace uint64) *track {
	const none, anyPlace, free, sameTrace, callees = 0, 1, 2, 3, 4
	best, found, to := none, place{}, (*track)(nil)
	compared := 0
	for _, on := range p.lanes {
		if compared >= maxCallees {
			break
		}
		at, ok := on.fit(x, true)
		compared += at.last - at.first
		if !ok {
			continue
		}
		kind := none
		switch {
		case at.first < at.last:
			kind = callees
		case on.trace == trace && on.pending():
			kind = sameTrace
		case !on.pending():
			kind = free
		case len(p.lanes) >= lanesOfProcess:
			kind = anyPlace
		}
		if kind > best {
			best, found, to = kind, at, on
		}
		if best == callees {
			break
		}
	}
	if to == nil {
		to, found = w.tracks.add(p.track, "spans", named("spans")), place{}
		p.lanes = append(w.tracks.retire(p.lanes, 0), to)
	}
	w.tracks.intervals += to.put(x, found)
	return to
}

// retire makes room for one more lane: if there are as many as allowed, the first one behind those that stay accepts no further
// slices.
func (t *tracks) retire(lanes []*track, stay int) []*track {
	if len(lanes) < maxLanes {
		return lanes
	}
	oldest := lanes[stay]
	t.intervals -= len(oldest.intervals)
	oldest.intervals = nil
	return slices.Delete(lanes, stay, stay+1)
}

// Crowded reports whether one more item could need more tracks than allowed, counters apart, or the tracks need too much
// memory. Then the next chunk should begin a new file, after Reset.
func (w *Writer) Crowded() bool {
	t := &w.tracks
	return len(t.all)-t.counters > w.maxTracks-tracksOfItem || t.intervals > maxIntervals || t.texts > maxTextBytes
}

// Reset forgets all tracks. The next chunk must begin a new file, because tracks get the same numbers again. Processes,
// threads and counters from before must not be used.
func (w *Writer) Reset() {
	w.tracks = newTracks()
	w.chunk = 0
}
