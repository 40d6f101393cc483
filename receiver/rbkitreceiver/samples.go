// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

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
	maxProfileBytes = 4 * mib
)

// samples makes profiles of CPU samples. Servers sample less often than configured, so a
// sample stands for an unknown time, and the profiles count samples.
type samples struct {
	out    *outputs
	origin *origin.Origin
	// clock is the clock of the samples; empty: unknown.
	clock string
	// serverClock is the clock in the server's last reply, and sampling whether it sampled
	// then.
	serverClock string
	sampling    bool
	// received is the number of samples that arrived.
	received int64
	// deep is how many were of stacks with too many frames.
	deep int64

	// The rest belongs to the open profile; dictionary nil: there is none.
	parcel     profileParcel
	dictionary *dictionary
	profile    pprofile.Profile
	byStack    map[sampleKey]pprofile.Sample
	// cached are samples by the bytes of their stacks, to find a known stack quickly.
	// cachedBytes is their memory, about.
	cached      map[string]pprofile.Sample
	cachedBytes int
	opened      time.Time
	// first and last are times of its samples, in Unix milliseconds.
	first, last int64
	number      uint64
	locations   []int32
}

// setState handles a reply of the server. A clock takes effect when sampling starts. If the
// clock changed while the server sampled, the clock of its samples is unknown: another
// client may have started sampling again.
func (s *samples) setState(h *rbkit.HandshakeReply) {
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
func (s *samples) setClock(clock string) {
	if s.clock != clock {
		s.deliver()
		s.clock = clock
	}
}

// sampleKey identifies samples that are counted together.
type sampleKey struct {
	stack  int32
	thread uint64 // 0: not known
}

// add counts a stack.
func (s *samples) count(millis int64, frames rbkit.Frames, now time.Time) {
	s.received++
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
	sample, known := s.cached[string(frames.Told())]
	if !known {
		sample = s.sample(frames)
		s.cacheSample(frames.Told(), sample)
	}
	sample.Values().SetAt(0, sample.Values().At(0)+1)
	s.parcel.samples++
	if len(s.byStack) >= s.out.config.Limits.MaxProfileStacks || s.parcel.bytes+s.dictionary.bytes >= maxProfileBytes {
		s.deliver()
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

// maxCachedBytes bounds the memory of cached stacks.
const maxCachedBytes = 4 * mib

// cacheSample caches the sample of a stack, if there is room.
func (s *samples) cacheSample(told []byte, sample pprofile.Sample) {
	if size := bytesOfString + len(told); s.cachedBytes+size <= maxCachedBytes {
		s.cached[string(told)] = sample
		s.cachedBytes += size
	}
}

func (s *samples) begin(millis int64, now time.Time) {
	var profiles pprofile.ProfilesSlice
	s.parcel, profiles, s.dictionary = newProfiles(s.out.Kit, s.origin.Resource)
	s.profile = profiles.AppendEmpty()
	s.byStack, s.cached, s.cachedBytes = map[sampleKey]pprofile.Sample{}, map[string]pprofile.Sample{}, 0
	s.opened, s.first, s.last = now, millis, millis
	s.dictionary.set(s.profile.SampleType(), typeSamples, unitCount)
	if s.clock != "" {
		s.dictionary.set(s.profile.PeriodType(), s.clock, unitNanoseconds)
	}
}

// deliverDue delivers a profile that is old enough.
func (s *samples) deliverDue(now time.Time) {
	if s.dictionary != nil && now.Sub(s.opened) >= s.out.config.ProfileInterval {
		s.deliver()
	}
}

// deliver delivers the open profile.
func (s *samples) deliver() {
	if s.dictionary == nil {
		return
	}
	s.number++
	s.profile.SetTime(pcommon.Timestamp(s.first * int64(time.Millisecond)))
	s.profile.SetDurationNano(uint64(s.last-s.first) * uint64(time.Millisecond))
	s.profile.SetProfileID(s.origin.ProfileID(typeSamples, s.number))
	s.parcel.bytes += s.dictionary.bytes
	s.out.profiles.Add(s.parcel)
	s.parcel, s.dictionary, s.byStack, s.cached = profileParcel{}, nil, nil, nil
}

// bytesOfStackSeen is the memory of a stack that has a sample, about.
const bytesOfStackSeen = 80

// held returns how many bytes the open profile takes, about.
func (s *samples) held() int {
	if s.dictionary == nil {
		return 0
	}
	return s.parcel.bytes + s.dictionary.bytes + s.cachedBytes + bytesOfStackSeen*len(s.byStack)
}
