// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"crypto/sha256"
	"fmt"
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/callbraid/callbraid/internal/rbkit"
)

// snapshots makes profiles of snapshots of allocations: how many objects were allocated
// where, and how many bytes.
type snapshots struct {
	env    *environment
	origin *origin
	// last is the time of the last snapshot, in Unix milliseconds; 0: there was none.
	last   int64
	number uint64
	open   *snapshot
}

// snapshot is one under way.
type snapshot struct {
	millis          int64
	parcel          profileParcel
	dictionary      *dictionary
	objects, spaces pprofile.Profile
	// stacks are by the IDs that they have in the snapshot.
	stacks map[uint64]snapshotStack
	// samples are the indexes of samples in both profiles: objects of a class that were
	// allocated in one place may have several sizes.
	samples map[siteSample]int
	// dropped counts allocations that there was no room for.
	dropped   int64
	locations []int32
}

// siteSample is what samples of snapshots are told apart by: the indexes of a stack and of
// the attribute that says the class.
type siteSample struct{ stack, class int32 }

// snapshotStack is the functions and locations of a stack, the leaf first.
type snapshotStack struct {
	locations []int32
	// file is that of the leaf, and function its own.
	file     int32
	function int32
}

func (s *snapshots) begin(millis int64) {
	if s.env.profiles == nil {
		return
	}
	open := &snapshot{millis: millis, stacks: map[uint64]snapshotStack{}, samples: map[siteSample]int{}}
	var profiles pprofile.ProfilesSlice
	open.parcel, profiles, open.dictionary = s.env.newProfiles(s.origin.resource)
	open.objects, open.spaces = profiles.AppendEmpty(), profiles.AppendEmpty()
	open.dictionary.set(open.objects.SampleType(), typeObjects, unitCount)
	open.dictionary.set(open.spaces.SampleType(), typeSpace, unitBytes)
	s.open = open
}

func (s *snapshots) stack(id uint64, frames rbkit.Frames) {
	limits := &s.env.config.Limits
	if s.open == nil || frames.Len() == 0 || frames.Len() > limits.MaxFrames || !s.open.hasRoom(len(s.open.stacks), limits) {
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
	s.open.stacks[id] = made
}

// hasRoom reports whether one more may be kept beside n others.
func (s *snapshot) hasRoom(n int, limits *LimitsConfig) bool {
	return n < limits.MaxProfileStacks && s.parcel.bytes+s.dictionary.bytes < limits.MaxQueuedSampleBytes/2
}

// allocation is told of objects that were allocated in a line. Those of which the stack
// is known are counted there, the others in the line alone.
func (s *snapshots) allocation(a *rbkit.Allocation) {
	if s.open == nil {
		return
	}
	rest := a.Count
	for id, count := range a.Stacks.All() {
		count = min(count, rest)
		if stack, ok := s.open.stacks[id]; ok && count > 0 {
			s.open.add(a, count, &stack, &s.env.config.Limits)
			rest -= count
		}
	}
	if rest > 0 {
		s.open.add(a, rest, nil, &s.env.config.Limits)
	}
}

// add adds a sample to both profiles; stack nil: it is not known.
func (s *snapshot) add(a *rbkit.Allocation, count uint64, stack *snapshotStack, limits *LimitsConfig) {
	if !s.hasRoom(s.objects.Samples().Len(), limits) {
		s.dropped++
		return
	}
	d := s.dictionary
	file, line := d.text(a.File), int64(min(a.Line, maxLine))
	s.locations = s.locations[:0]
	if stack != nil && stack.file == file {
		// The leaf is the method that the line is in.
		s.locations = append(append(s.locations, d.location(locationKey{function: stack.function, line: line})), stack.locations[1:]...)
	} else {
		site := d.function(functionKey{name: d.string(noMethod), file: file})
		s.locations = append(s.locations, d.location(locationKey{function: site, line: line}))
		if stack != nil {
			s.locations = append(s.locations, stack.locations...)
		}
	}
	class := reservedNames[nameHidden]
	if a.Class != nil {
		class = validText(withoutAddresses(a.Class))
	}
	at := siteSample{stack: d.stack(s.locations), class: d.attribute(attributeKey{key: attributeClass, text: class})}
	index, known := s.samples[at]
	if !known {
		index = s.objects.Samples().Len()
		s.samples[at] = index
		s.append(s.objects, at)
		s.append(s.spaces, at)
	}
	increase(s.objects, index, count, 1)
	increase(s.spaces, index, count, a.Size)
}

// append appends a sample to a profile.
func (s *snapshot) append(to pprofile.Profile, at siteSample) {
	sample := to.Samples().AppendEmpty()
	sample.SetStackIndex(at.stack)
	sample.AttributeIndices().Append(at.class)
	sample.Values().Append(0)
	s.parcel.samples++
	s.parcel.bytes += bytesOfSample
}

// increase adds so many times each to a sample.
func increase(of pprofile.Profile, index int, times, each uint64) {
	values := of.Samples().At(index).Values()
	values.SetAt(0, plus(values.At(0), times, each))
}

// end hands on the snapshot under way.
func (s *snapshots) end() {
	open := s.open
	s.open = nil
	if open == nil {
		return
	}
	since := s.last
	s.last = open.millis
	if open.dropped > 0 {
		s.env.telemetry.samplesDropped(int(min(2*open.dropped, math.MaxInt32)), droppedLimit)
	}
	if open.parcel.samples == 0 {
		return
	}
	s.number++
	for i, p := range []pprofile.Profile{open.objects, open.spaces} {
		if since > 0 && since <= open.millis {
			// What came since the last one.
			p.SetTime(pcommon.Timestamp(since * int64(time.Millisecond)))
			p.SetDurationNano(uint64(open.millis-since) * uint64(time.Millisecond))
		} else {
			p.SetTime(pcommon.Timestamp(open.millis * int64(time.Millisecond)))
		}
		p.SetProfileID(s.origin.profileID([]string{typeObjects, typeSpace}[i], s.number))
	}
	open.parcel.bytes += open.dictionary.bytes
	s.env.profiles.Add(open.parcel)
}

// profileID is the same whenever the same is received of the same life of a server.
func (o *origin) profileID(kind string, number uint64) (id pprofile.ProfileID) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%x %s %d", o.seed, kind, number))
	copy(id[:], sum[:])
	return id
}
