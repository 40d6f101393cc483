// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
)

// Types and units of the values of profiles.
const (
	typeSamples     = "samples"
	typeObjects     = "alloc_objects"
	typeSpace       = "alloc_space"
	unitCount       = "count"
	unitBytes       = "bytes"
	unitNanoseconds = "nanoseconds"
	bytesOfSample   = 128
	maxProfileBytes = 4 << 20
)

// Samples makes profiles of CPU samples. Servers sample less often than configured, so a
// sample stands for an unknown time, and the profiles count samples.
type Samples struct {
	settings *Settings
	origin   *origin.Origin
	// clock is the clock of the samples; empty: unknown.
	clock string
	// serverClock is the clock in the server's last reply. sampling says that the server sampled
	// then.
	serverClock string
	sampling    bool
	// Received is the number of samples that arrived.
	Received int64
	// TooDeep counts samples with too many frames.
	TooDeep int64

	// The following fields belong to the open profile. dictionary is nil if there is none.
	parcel     Parcel
	dictionary *dictionary
	profile    pprofile.Profile
	byStack    map[sampleKey]pprofile.Sample
	// cached are samples by the bytes of their stacks, to find a known stack quickly. cachedBytes
	// is their approximate memory.
	cached      map[string]pprofile.Sample
	cachedBytes int
	opened      time.Time
	// first and last are times of its samples, in Unix milliseconds.
	first, last int64
	number      uint64
	locations   []int32
}

// NewSamples returns no samples of a process.
func NewSamples(settings *Settings, of *origin.Origin) Samples {
	return Samples{settings: settings, origin: of}
}

// SetOrigin delivers the open profile, and sets the origin of all later profiles.
func (s *Samples) SetOrigin(of *origin.Origin) {
	s.Deliver()
	s.origin = of
}

// SetState handles a reply of the server. A clock takes effect when sampling starts. If the
// clock changed while the server sampled, the clock of its samples is unknown: another
// client may have started sampling again.
func (s *Samples) SetState(h *rbkit.HandshakeReply) {
	clock := names.ValidString(h.Clock)
	if s.sampling && h.CPUProfiling {
		if clock != s.serverClock {
			s.setClock("")
		}
	} else {
		s.setClock(clock)
	}
	s.serverClock, s.sampling = clock, h.CPUProfiling
}

// setClock sets the clock of all later samples.
func (s *Samples) setClock(clock string) {
	if s.clock != clock {
		s.Deliver()
		s.clock = clock
	}
}

// sampleKey identifies samples that are counted together.
type sampleKey struct {
	stack  int32
	thread uint64 // 0: unknown
}

// Count counts a stack.
func (s *Samples) Count(millis int64, frames rbkit.Frames, now time.Time) {
	s.Received++
	if s.settings.Deliver == nil || frames.Len() == 0 {
		return
	}
	if frames.Len() > s.settings.MaxFrames {
		s.TooDeep++
		return
	}
	if s.dictionary == nil {
		s.beginProfile(millis, now)
	}
	s.first, s.last = min(s.first, millis), max(s.last, millis)
	sample, known := s.cached[string(frames.Encoded())]
	if !known {
		sample = s.sample(frames)
		s.cacheSample(frames.Encoded(), sample)
	}
	sample.Values().SetAt(0, sample.Values().At(0)+1)
	s.parcel.Samples++
	if len(s.byStack) >= s.settings.MaxStacks || s.parcel.Bytes+s.dictionary.bytes >= maxProfileBytes {
		s.Deliver()
	}
}

// sample returns the sample of a stack in the open profile.
func (s *Samples) sample(frames rbkit.Frames) pprofile.Sample {
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
		s.parcel.Bytes += bytesOfSample
	}
	return sample
}

// maxCachedBytes bounds the memory of cached stacks.
const maxCachedBytes = 4 << 20

// cacheSample caches the sample of a stack, if there is room.
func (s *Samples) cacheSample(encoded []byte, sample pprofile.Sample) {
	if size := bytesOfString + len(encoded); s.cachedBytes+size <= maxCachedBytes {
		s.cached[string(encoded)] = sample
		s.cachedBytes += size
	}
}

func (s *Samples) beginProfile(millis int64, now time.Time) {
	var profiles pprofile.ProfilesSlice
	s.parcel, profiles, s.dictionary = s.settings.newProfiles(s.origin.Resource)
	s.profile = profiles.AppendEmpty()
	s.byStack, s.cached, s.cachedBytes = map[sampleKey]pprofile.Sample{}, map[string]pprofile.Sample{}, 0
	s.opened, s.first, s.last = now, millis, millis
	s.dictionary.setValueType(s.profile.SampleType(), typeSamples, unitCount)
	if s.clock != "" {
		s.dictionary.setValueType(s.profile.PeriodType(), s.clock, unitNanoseconds)
	}
}

// DeliverDue delivers a profile that is old enough.
func (s *Samples) DeliverDue(now time.Time) {
	if s.dictionary != nil && now.Sub(s.opened) >= s.settings.Interval {
		s.Deliver()
	}
}

// Deliver delivers the open profile.
func (s *Samples) Deliver() {
	if s.dictionary == nil {
		return
	}
	s.number++
	s.profile.SetTime(pcommon.Timestamp(s.first * int64(time.Millisecond)))
	s.profile.SetDurationNano(uint64(s.last-s.first) * uint64(time.Millisecond))
	s.profile.SetProfileID(s.origin.ProfileID(typeSamples, s.number))
	s.parcel.Bytes += s.dictionary.bytes
	s.settings.Deliver(s.parcel)
	s.parcel, s.dictionary, s.byStack, s.cached = Parcel{}, nil, nil, nil
}

// bytesOfStackSeen is the approximate memory of a stack with a sample.
const bytesOfStackSeen = 80

// Memory returns the approximate memory of the open profile.
func (s *Samples) Memory() int {
	if s.dictionary == nil {
		return 0
	}
	return s.parcel.Bytes + s.dictionary.bytes + s.cachedBytes + bytesOfStackSeen*len(s.byStack)
}
