// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/callbraid/callbraid/internal/rbkit"
)

// What the values of profiles are.
const (
	typeSamples     = "samples"
	typeObjects     = "alloc_objects"
	typeSpace       = "alloc_space"
	unitCount       = "count"
	unitBytes       = "bytes"
	unitNanoseconds = "nanoseconds"
	bytesOfSample   = 128
	maxProfileBytes = 4 * mib
)

// samples makes profiles of CPU samples. How much time a sample stands for is not known:
// servers take fewer than they were asked to, so they are counted.
type samples struct {
	out    *outputs
	origin *origin
	// clock says by what the server samples; empty: not known.
	clock string
	// setting is what the server said of it last, and on whether it sampled then.
	setting string
	on      bool
	// count is how many samples have come.
	count int64
	// deep is how many were of stacks with too many frames.
	deep int64

	// What follows is of the profile under way; dictionary nil: there is none.
	parcel     profileParcel
	dictionary *dictionary
	profile    pprofile.Profile
	byStack    map[sampleKey]pprofile.Sample
	// told are samples by what servers say of their stacks, so that one that was seen is
	// found at once, and toldBytes what these take, about.
	told      map[string]pprofile.Sample
	toldBytes int
	opened    time.Time
	// first and last are times of its samples, in Unix milliseconds.
	first, last int64
	number      uint64
	locations   []int32
}

// state is told of what the server says of itself. A clock that is set takes effect when
// sampling starts: by which one a server samples whose clock was changed while it was seen to
// sample is not known, since somebody may have started it anew.
func (s *samples) state(h *rbkit.HandshakeReply) {
	clock := text(h.Clock)
	if s.on && h.CPUProfiling {
		if clock != s.setting {
			s.by("")
		}
	} else {
		s.by(clock)
	}
	s.setting, s.on = clock, h.CPUProfiling
}

// by says by what the server samples from now on.
func (s *samples) by(clock string) {
	if s.clock != clock {
		s.flush()
		s.clock = clock
	}
}

// sampleKey is what samples are counted by.
type sampleKey struct {
	stack  int32
	thread uint64 // 0: not known
}

// add counts a stack.
func (s *samples) add(millis int64, frames rbkit.Frames, now time.Time) {
	s.count++
	if s.out.profiles == nil || frames.Len() == 0 {
		return
	}
	if frames.Len() > s.out.config.Limits.MaxFrames {
		s.deep++
		return
	}
	if s.dictionary == nil {
		s.begin(millis, now)
	}
	s.first, s.last = min(s.first, millis), max(s.last, millis)
	sample, known := s.told[string(frames.Told())]
	if !known {
		sample = s.sample(frames)
		s.remember(frames.Told(), sample)
	}
	sample.Values().SetAt(0, sample.Values().At(0)+1)
	s.parcel.samples++
	if len(s.byStack) >= s.out.config.Limits.MaxProfileStacks || s.parcel.bytes+s.dictionary.bytes >= maxProfileBytes {
		s.flush()
	}
}

// sample is that of a stack of the profile under way.
func (s *samples) sample(frames rbkit.Frames) pprofile.Sample {
	s.locations = s.locations[:0]
	var thread uint64
	for f := range frames.All() {
		if len(s.locations) == 0 {
			thread = min(f.Thread, math.MaxInt64)
		}
		s.locations = append(s.locations, s.dictionary.frame(&f).location)
	}
	key := sampleKey{stack: s.dictionary.stack(s.locations), thread: thread}
	sample, known := s.byStack[key]
	if !known {
		sample = s.profile.Samples().AppendEmpty()
		sample.SetStackIndex(key.stack)
		if key.thread != 0 {
			sample.AttributeIndices().Append(s.dictionary.attribute(numberAttribute(attributeThreadID, int64(key.thread))))
		}
		sample.Values().Append(0)
		s.byStack[key] = sample
		s.parcel.bytes += bytesOfSample
	}
	return sample
}

// maxToldBytes is what the stacks that are found at once may take.
const maxToldBytes = 4 * mib

// remember has the sample of a stack found at once, if there is room for it.
func (s *samples) remember(told []byte, sample pprofile.Sample) {
	if size := bytesOfString + len(told); s.toldBytes+size <= maxToldBytes {
		s.told[string(told)] = sample
		s.toldBytes += size
	}
}

func (s *samples) begin(millis int64, now time.Time) {
	var profiles pprofile.ProfilesSlice
	s.parcel, profiles, s.dictionary = newProfiles(s.out.Kit, s.origin.resource)
	s.profile = profiles.AppendEmpty()
	s.byStack, s.told, s.toldBytes = map[sampleKey]pprofile.Sample{}, map[string]pprofile.Sample{}, 0
	s.opened, s.first, s.last = now, millis, millis
	s.dictionary.set(s.profile.SampleType(), typeSamples, unitCount)
	if s.clock != "" {
		s.dictionary.set(s.profile.PeriodType(), s.clock, unitNanoseconds)
	}
}

// handOnDue hands on a profile whose time has come.
func (s *samples) handOnDue(now time.Time) {
	if s.dictionary != nil && now.Sub(s.opened) >= s.out.config.ProfileInterval {
		s.flush()
	}
}

// flush hands on what there is.
func (s *samples) flush() {
	if s.dictionary == nil {
		return
	}
	s.number++
	s.profile.SetTime(pcommon.Timestamp(s.first * int64(time.Millisecond)))
	s.profile.SetDurationNano(uint64(s.last-s.first) * uint64(time.Millisecond))
	s.profile.SetProfileID(s.origin.profileID(typeSamples, s.number))
	s.parcel.bytes += s.dictionary.bytes
	s.out.profiles.Add(s.parcel)
	s.parcel, s.dictionary, s.byStack, s.told = profileParcel{}, nil, nil, nil
}

// bytesOfStackSeen is the memory of a stack that has a sample, about.
const bytesOfStackSeen = 80

// held returns how many bytes the open profile takes, about.
func (s *samples) held() int {
	if s.dictionary == nil {
		return 0
	}
	return s.parcel.bytes + s.dictionary.bytes + s.toldBytes + bytesOfStackSeen*len(s.byStack)
}
