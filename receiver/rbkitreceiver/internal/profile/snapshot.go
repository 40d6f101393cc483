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

// Snapshots makes profiles of snapshots of allocations: objects and bytes by place. All snapshots
// of a message are one.
type Snapshots struct {
	settings *Settings
	origin   *origin.Origin
	// last is the time of the last snapshot, in Unix milliseconds; 0: there was none.
	last   int64
	number uint64
	open   *snapshot
	// TooDeep counts stacks with too many frames, Crowded stacks without room, and Dropped samples
	// without room.
	TooDeep, Crowded, Dropped int64
}

// snapshot has the profiles of one snapshot, or of all snapshots of a message.
type snapshot struct {
	// since is the time of the previous snapshot, 0 if there was none. millis is its own time.
	since, millis   int64
	parcel          Parcel
	dictionary      *dictionary
	objects, spaces pprofile.Profile
	// stacks are by their IDs in the current event.
	stacks map[uint64]snapshotStack
	// numbered is how many stacks have a number.
	numbered int32
	// placed are indexes of stacks in the dictionary by place.
	placed map[stackPlace]int32
	// samples are the indexes of samples in both profiles. Objects of a class in one place may
	// have several sizes.
	samples map[siteSample]int
	// costly is the work of the dictionary from which allocations count without their stacks.
	costly int
	// dropped counts allocations without room.
	dropped   int64
	locations []int32
	// named is the current file as it was sent, and at the current allocation in it.
	named []byte
	at    snapshotSite
}

// costPerByte is the work of the dictionary for each byte of a snapshot until allocations count
// without their stacks. A few bytes may report that a deep stack allocates in one more line.
// Frames of real servers have more than 50 bytes, and lines with a stack more than 20. So stacks
// of some hundred frames may have any number of lines.
const costPerByte = 16

// siteSample identifies samples of snapshots: the indexes of a stack and of the attribute of the
// class.
type siteSample struct{ stack, class int32 }

// snapshotSite is where objects of a class are allocated: the indexes of the file and of the
// attribute of the class, and the line.
type snapshotSite struct {
	file, class int32
	line        int64
}

// stackPlace is a stack, by its number, that allocates in a line.
type stackPlace struct {
	stack, file int32
	line        int64
}

// snapshotStack has the functions and locations of a stack, the leaf first.
type snapshotStack struct {
	// number identifies it in the profile. No stack has the number 0.
	number    int32
	locations []int32
	// file is the file of the leaf, and function its function.
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
		// clear takes time for the largest size that the map has had.
		open.stacks = map[uint64]snapshotStack{}
	}
}

func (o *Settings) newSnapshot(resource pcommon.Resource, since int64) *snapshot {
	s := &snapshot{since: since, stacks: map[uint64]snapshotStack{}, placed: map[stackPlace]int32{}, samples: map[siteSample]int{}}
	var profiles pprofile.ProfilesSlice
	s.parcel, profiles, s.dictionary = o.newProfiles(resource)
	s.objects, s.spaces = profiles.AppendEmpty(), profiles.AppendEmpty()
	s.dictionary.setValueType(s.objects.SampleType(), typeObjects, unitCount)
	s.dictionary.setValueType(s.spaces.SampleType(), typeSpace, unitBytes)
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

// hasRoom reports whether there is room for one more beside n others.
func (s *snapshot) hasRoom(n int, limits *Settings) bool {
	return n < limits.MaxStacks && s.parcel.Bytes+s.dictionary.bytes < limits.MaxBytes
}

// AddAllocation adds objects that were allocated in a line. Objects with a known stack count in
// their stack, all others in the line alone.
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
			s.open.countObjects(a, count, &stack, s.settings)
			rest -= count
		}
	}
	if rest > 0 {
		s.open.countObjects(a, rest, &snapshotStack{}, s.settings)
	}
}

// site sets the place of an allocation, and reports whether there is room for it.
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

// countObjects adds objects to the samples of both profiles.
func (s *snapshot) countObjects(a *rbkit.Allocation, count uint64, stack *snapshotStack, limits *Settings) {
	at := siteSample{stack: s.stackInLine(stack), class: s.at.class}
	index, known := s.samples[at]
	if !known {
		if index = s.objects.Samples().Len(); !s.hasRoom(index, limits) {
			s.dropped++
			return
		}
		s.samples[at] = index
		s.appendSample(s.objects, at)
		s.appendSample(s.spaces, at)
	}
	increase(s.objects, index, count, 1)
	increase(s.spaces, index, count, a.Size)
}

// stackInLine returns the index of a stack that allocates in the current line. The leaf is the method
// of the line, if it is of the same file. A stack that costs too much is left out.
func (s *snapshot) stackInLine(stack *snapshotStack) int32 {
	d := s.dictionary
	at := stackPlace{stack: stack.number, file: s.at.file, line: s.at.line}
	if index, known := s.placed[at]; known {
		return index
	}
	if at.stack != 0 && d.work+len(stack.locations) > s.costly {
		return s.stackInLine(&snapshotStack{})
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

// longestPlace bounds the end of a file's path in names of functions, which each line repeats.
const longestPlace = 100

// siteFunction returns a function that stands for the unknown method of the current line. Its
// name is the end of the path and the line, because many viewers show only the name of a
// function.
func (s *snapshot) siteFunction() int32 {
	d := s.dictionary
	name := noMethod
	if end := pathEnd(d.tables.StringTable().At(int(s.at.file))); end != "" && len(end) <= longestPlace {
		name = fmt.Sprintf("%s:%d", end, s.at.line)
	}
	return d.function(functionKey{name: d.string(name), file: s.at.file})
}

// pathEnd returns the last directory of a path, and the file.
func pathEnd(path string) string {
	if slash := strings.LastIndexByte(path, '/'); slash > 0 {
		return path[strings.LastIndexByte(path[:slash], '/')+1:]
	}
	return path
}

// appendSample appends a sample to a profile.
func (s *snapshot) appendSample(to pprofile.Profile, at siteSample) {
	sample := to.Samples().AppendEmpty()
	sample.SetStackIndex(at.stack)
	sample.AttributeIndices().Append(at.class)
	sample.Values().Append(0)
	s.parcel.Samples++
	s.parcel.Bytes += bytesOfSample
}

// increase adds times*each to a sample.
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
	s.Dropped += 2 * open.dropped // once for each of the two profiles
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

// bytesOfPlace is the approximate memory of a place or a sample of a snapshot.
const bytesOfPlace = 48

// Memory returns the approximate memory of the open snapshot.
func (s *Snapshots) Memory() int {
	o := s.open
	if o == nil {
		return 0
	}
	return o.parcel.Bytes + o.dictionary.bytes + bytesOfStackSeen*len(o.stacks) + bytesOfPlace*(len(o.placed)+len(o.samples))
}
