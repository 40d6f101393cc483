// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/interruption"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/saturating"
)

// Snapshots makes profiles of snapshots of allocations: how many objects were allocated
// where, and how many bytes. Those of one message are one.
type Snapshots struct {
	settings *Settings
	origin   *origin.Origin
	// last is the time of the last snapshot, in Unix milliseconds; 0: there was none.
	last   int64
	number uint64
	open   *snapshot
	// TooDeep and crowded count stacks that were left out: those with too many frames, and
	// those that there was no room for. dropped counts samples that there was none for.
	TooDeep, Crowded, Dropped int64
}

// snapshot has the profiles of one snapshot, or of all snapshots of a message.
type snapshot struct {
	// since is the time of the snapshot before, 0 where there was none; millis its own.
	since, millis   int64
	parcel          Parcel
	dictionary      *dictionary
	objects, spaces pprofile.Profile
	// stacks are by the IDs that they have in the event under way.
	stacks map[uint64]snapshotStack
	// numbered is how many stacks have a number.
	numbered int32
	// placed are stacks of the dictionary by place.
	placed map[stackPlace]int32
	// samples are the indexes of samples in both profiles: objects of a class that were
	// allocated in one place may have several sizes.
	samples map[siteSample]int
	// costly is how much work of the dictionary there may be until no more stacks are made.
	costly int
	// dropped counts allocations that there was no room for.
	dropped   int64
	locations []int32
	// named is the file under way, as it was sent, and at the allocation in it.
	named []byte
	at    snapshotSite
}

// costPerByte is how much work of the dictionary there may be for each byte of a snapshot
// until no more stacks are made: a few bytes may say that a deep stack allocates in yet
// another line. Of real servers a frame has more than 50 bytes and a line with a stack more
// than 20, so that stacks of some hundred frames may all have as many lines as they like.
const costPerByte = 16

// siteSample is what samples of snapshots are told apart by: the indexes of a stack and of
// the attribute that says the class.
type siteSample struct{ stack, class int32 }

// snapshotSite is where objects of a class are allocated, by the indexes of the file and of
// the attribute that says the class.
type snapshotSite struct {
	file, class int32
	line        int64
}

// stackPlace is a stack, by its number, that allocates in a line.
type stackPlace struct {
	stack, file int32
	line        int64
}

// snapshotStack is the functions and locations of a stack, the leaf first.
type snapshotStack struct {
	// number tells it from all others of the profile. That of none is 0.
	number    int32
	locations []int32
	// file is that of the leaf, and function its own.
	file     int32
	function int32
}

// NewSnapshots returns no snapshots of a process.
func NewSnapshots(settings *Settings, of *origin.Origin) Snapshots {
	return Snapshots{settings: settings, origin: of}
}

// SetOrigin delivers the open snapshot, and sets the origin of all later snapshots.
func (s *Snapshots) SetOrigin(of *origin.Origin) {
	s.Deliver()
	s.origin = of
}

// BreakSequence forgets the time of the last snapshot, because messages were lost.
func (s *Snapshots) BreakSequence() { s.last = 0 }

// BeginEvent begins an event of so many bytes.
func (s *Snapshots) BeginEvent(millis int64, bytes int) {
	if s.settings.Deliver == nil {
		return
	}
	if s.open == nil {
		s.open = s.settings.newSnapshot(s.origin.Resource, s.last)
	}
	open := s.open
	open.millis, s.last = millis, millis
	open.costly += costPerByte * bytes
	open.named, open.at = nil, snapshotSite{}
	if len(open.stacks) > 0 {
		// clear takes as long as the map was large once.
		open.stacks = map[uint64]snapshotStack{}
	}
}

func (o *Settings) newSnapshot(resource pcommon.Resource, since int64) *snapshot {
	s := &snapshot{since: since, stacks: map[uint64]snapshotStack{}, placed: map[stackPlace]int32{}, samples: map[siteSample]int{}}
	var profiles pprofile.ProfilesSlice
	s.parcel, profiles, s.dictionary = o.newProfiles(resource)
	s.objects, s.spaces = profiles.AppendEmpty(), profiles.AppendEmpty()
	s.dictionary.set(s.objects.SampleType(), typeObjects, unitCount)
	s.dictionary.set(s.spaces.SampleType(), typeSpace, unitBytes)
	return s
}

func (s *Snapshots) AddStack(id uint64, frames rbkit.Frames) {
	if s.open == nil || frames.Len() == 0 {
		return
	}
	if frames.Len() > s.settings.MaxFrames {
		s.TooDeep++
		return
	}
	if !s.open.hasRoom(len(s.open.stacks), s.settings) {
		s.Crowded++
		return
	}
	d, made := s.open.dictionary, snapshotStack{locations: make([]int32, 0, frames.Len())}
	for f := range frames.All() {
		at := d.frame(&f)
		if len(made.locations) == 0 {
			made.function = at.function
			made.file = d.tables.FunctionTable().At(int(at.function)).FilenameStrindex()
		}
		made.locations = append(made.locations, at.location)
	}
	d.bytes += 4 * len(made.locations)
	s.open.numbered++
	made.number = s.open.numbered
	s.open.stacks[id] = made
}

// hasRoom reports whether one more may be kept beside n others.
func (s *snapshot) hasRoom(n int, limits *Settings) bool {
	return n < limits.MaxStacks && s.parcel.Bytes+s.dictionary.bytes < limits.MaxBytes
}

// AddAllocation is told of objects that were allocated in a line. Those of which the stack
// is known are counted there, the others in the line alone.
func (s *Snapshots) AddAllocation(a *rbkit.Allocation, interruption *interruption.Interruption) {
	if s.open == nil || !s.open.site(a, s.settings) {
		return
	}
	rest := a.Count
	for id, count := range a.Stacks.All() {
		if interruption.IsDue() {
			return
		}
		s.open.dictionary.work++
		count = min(count, rest)
		if stack, ok := s.open.stacks[id]; ok && count > 0 {
			s.open.count(a, count, &stack, s.settings)
			rest -= count
		}
	}
	if rest > 0 {
		s.open.count(a, rest, &snapshotStack{}, s.settings)
	}
}

// site is told where something is allocated, and reports whether there is room for it.
func (s *snapshot) site(a *rbkit.Allocation, limits *Settings) bool {
	if !s.hasRoom(s.objects.Samples().Len(), limits) {
		s.dropped++
		return false
	}
	d := s.dictionary
	if !names.Same(a.File, s.named) {
		s.named, s.at.file = a.File, d.text(a.File)
	}
	class := names.ClassName(names.WithoutAddresses(a.Class))
	s.at.line, s.at.class = int64(min(a.Line, names.MaxLine)), d.attribute(textAttribute(names.AttributeClass, class))
	return true
}

// add adds so many objects to the samples of both profiles.
func (s *snapshot) count(a *rbkit.Allocation, count uint64, stack *snapshotStack, limits *Settings) {
	at := siteSample{stack: s.place(stack), class: s.at.class}
	index, known := s.samples[at]
	if !known {
		if index = s.objects.Samples().Len(); !s.hasRoom(index, limits) {
			s.dropped++
			return
		}
		s.samples[at] = index
		s.append(s.objects, at)
		s.append(s.spaces, at)
	}
	increase(s.objects, index, count, 1)
	increase(s.spaces, index, count, a.Size)
}

// place is the index of a stack that allocates in the present line. The leaf is the method
// that the line is in, if it is of the same file. A stack that costs too much is left out.
func (s *snapshot) place(stack *snapshotStack) int32 {
	d := s.dictionary
	at := stackPlace{stack: stack.number, file: s.at.file, line: s.at.line}
	if index, known := s.placed[at]; known {
		return index
	}
	if at.stack != 0 && d.work+len(stack.locations) > s.costly {
		return s.place(&snapshotStack{})
	}
	s.locations = s.locations[:0]
	if at.stack != 0 && stack.file == at.file {
		s.locations = append(append(s.locations, d.location(locationKey{function: stack.function, line: at.line})), stack.locations[1:]...)
	} else {
		s.locations = append(append(s.locations, d.location(locationKey{function: s.siteFunction(), line: at.line})), stack.locations...)
	}
	index := d.stack(s.locations)
	s.placed[at] = index
	return index
}

// longestPlace is how many bytes the end of a file's path has at most that stands in names
// of functions, for each line anew.
const longestPlace = 100

// siteFunction returns a function that stands for the unknown method of the current line.
// Its name is its place, the end of the path and the line: many viewers show nothing else
// of a function.
func (s *snapshot) siteFunction() int32 {
	d := s.dictionary
	name := noMethod
	if end := pathEnd(d.tables.StringTable().At(int(s.at.file))); end != "" && len(end) <= longestPlace {
		name = fmt.Sprintf("%s:%d", end, s.at.line)
	}
	return d.function(functionKey{name: d.string(name), file: s.at.file})
}

// pathEnd is the last directory of a path, and the file.
func pathEnd(path string) string {
	if slash := strings.LastIndexByte(path, '/'); slash > 0 {
		return path[strings.LastIndexByte(path[:slash], '/')+1:]
	}
	return path
}

// append appends a sample to a profile.
func (s *snapshot) append(to pprofile.Profile, at siteSample) {
	sample := to.Samples().AppendEmpty()
	sample.SetStackIndex(at.stack)
	sample.AttributeIndices().Append(at.class)
	sample.Values().Append(0)
	s.parcel.Samples++
	s.parcel.Bytes += bytesOfSample
}

// increase adds so many times each to a sample.
func increase(of pprofile.Profile, index int, times, each uint64) {
	values := of.Samples().At(index).Values()
	values.SetAt(0, saturating.AddProduct(values.At(0), times, each))
}

// Deliver delivers the open snapshot.
func (s *Snapshots) Deliver() {
	open := s.open
	s.open = nil
	if open == nil {
		return
	}
	s.Dropped += 2 * open.dropped // in two profiles
	if open.parcel.Samples == 0 {
		return
	}
	s.number++
	for i, p := range []pprofile.Profile{open.objects, open.spaces} {
		if open.since > 0 && open.since <= open.millis {
			// The allocations since the last snapshot.
			p.SetTime(pcommon.Timestamp(open.since * int64(time.Millisecond)))
			p.SetDurationNano(uint64(open.millis-open.since) * uint64(time.Millisecond))
		} else {
			p.SetTime(pcommon.Timestamp(open.millis * int64(time.Millisecond)))
		}
		p.SetProfileID(s.origin.ProfileID([]string{typeObjects, typeSpace}[i], s.number))
	}
	open.parcel.Bytes += open.dictionary.bytes
	s.settings.Deliver(open.parcel)
}

// bytesOfPlace is the memory of a place or a sample of a snapshot, about.
const bytesOfPlace = 48

// Memory returns how many bytes the open snapshot takes, about.
func (s *Snapshots) Memory() int {
	o := s.open
	if o == nil {
		return 0
	}
	return o.parcel.Bytes + o.dictionary.bytes + bytesOfStackSeen*len(o.stacks) + bytesOfPlace*(len(o.placed)+len(o.samples))
}
