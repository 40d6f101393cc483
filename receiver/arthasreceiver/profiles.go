// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/componentkit/profiletables"
	"github.com/callbraid/callbraid/internal/javamethods/signals"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/profiling"
)

// profileParcel is a queued profile.
type profileParcel struct {
	profiles       pprofile.Profiles
	samples, bytes int
}

// newProfiles opens the queue of profiles. It is nil if no pipeline accepts profiles.
func newProfiles(env *environment) *handover.Profiles[profileParcel] {
	return receiverkit.NewProfiles(env.run, env.config.Limits.SampleLimits, handover.QueueSettings[profileParcel, pprofile.Profiles]{
		MaxAtOnce: 1,
		Size:      func(p *profileParcel) (samples, bytes int) { return p.samples, p.bytes },
		Make:      func(parcels []profileParcel) pprofile.Profiles { return parcels[0].profiles },
		Dropped:   env.counters.SamplesDropped,
	})
}

// newProfiler returns the profiler of a server, or nil if it is not configured or no pipeline accepts profiles.
func (e *environment) newProfiler(client *arthas.Client, server *ServerConfig, stored storage.Client, logger *zap.Logger, origin func() *signals.Origin) *profiling.Profiler {
	profiles := &e.config.Profiles
	if profiles.Period == 0 || e.run.Next.Profiles == nil {
		return nil
	}
	return profiling.New(profiling.Settings{
		Client: client, Event: profiles.event(), Interval: profiles.Interval, Period: profiles.Period, MaxText: int64(e.config.Limits.MaxProfileBytes),
		Storage: stored, Key: "profiler." + server.Endpoint, Leaving: e.run.Leaving, Output: &profileOutput{env: e, logger: logger, origin: origin}, Now: e.Now,
	})
}

// profileOutput forwards the profiles of one server. It implements [profiling.Output].
type profileOutput struct {
	env    *environment
	logger *zap.Logger
	// origin returns the process of a profile.
	origin func() *signals.Origin
	// cuts are log lines about lost parts of profiles.
	cuts logline.Burst
	// missing is why the last period has no profile. The goroutine of the profiler owns it.
	missing string
}

// Profile forwards a profile. A profile without stacks is none.
func (o *profileOutput) Profile(of *arthas.Profiler, begun, ended time.Time) {
	config, origin := &o.env.config.Profiles, o.origin()
	parcel := profileParcel{profiles: pprofile.NewProfiles()}
	made := o.env.AppendProfiles(parcel.profiles, origin.Resource).AppendEmpty()
	made.SetTime(pcommon.NewTimestampFromTime(begun))
	made.SetDurationNano(uint64(max(0, ended.Sub(begun))))
	id := sha256.Sum256(fmt.Appendf(nil, "%x profile %d", origin.Seed, begun.UnixNano()))
	made.SetProfileID(pprofile.ProfileID(id[:16]))
	s := newStacks(parcel.profiles.Dictionary(), made, o.env.config.Limits.MaxProfileStacks, config.event())
	var malformed int64
	for stack := range of.Stacks(&malformed) {
		s.add(stack)
	}
	o.env.counters.ProfileLosses(of.Cut, malformed, s.folded)
	if of.Cut+malformed+s.folded > 0 {
		if since, due := o.cuts.Count(o.env.Now()); due {
			o.logger.Warn("A part of a profile is lost: raise limits.max_profile_bytes and limits.max_profile_stacks, or shorten profiles.period",
				zap.Int64("dropped_bytes", of.Cut), zap.Int64("malformed_lines", malformed), zap.Int64("folded_stacks", s.folded), zap.Int("times_since_last_line", since))
		}
	} else {
		o.cuts.Over()
	}
	if parcel.samples = made.Samples().Len(); parcel.samples == 0 {
		return
	}
	s.describe(config)
	parcel.bytes = s.bytes
	o.env.profiles.Enqueue(parcel)
}

// Period counts a period, and logs why there is no profile: once until there is one, or another reason.
func (o *profileOutput) Period(outcome profiling.Outcome, why error) {
	o.env.counters.Period(outcome)
	text := ""
	if why != nil {
		text = why.Error()
	}
	known := o.missing == text
	o.missing = text
	if known || why == nil {
		return
	}
	message := map[profiling.Outcome]string{
		profiling.Foreign: "Somebody else uses the program's profiler. The receiver tries again after a period",
		profiling.Lost:    "A period has no profile",
		profiling.Refused: "The profiler does not work. The receiver tries again after a period",
	}[outcome]
	if errors.Is(why, arthas.ErrTooLarge) {
		message = "A profile is lost, because it is many times as long as limits.max_profile_bytes: raise it, or shorten profiles.period"
	}
	o.logger.Warn(message, zap.Error(why))
}

// Types and units of the values of profiles.
const (
	unitNanoseconds = "nanoseconds"
	unitBytes       = "bytes"
)

// valueTypes are the types of the values, by event.
var valueTypes = map[arthas.ProfilerEvent]struct{ kind, unit string }{
	arthas.ProfileCPU: {"cpu", unitNanoseconds}, arthas.ProfileWall: {"wall", unitNanoseconds},
	arthas.ProfileAlloc: {"alloc_space", unitBytes}, arthas.ProfileLock: {"delay", unitNanoseconds},
}

// attributeFrameType is the attribute of the semantic conventions for the kind of a frame's code.
const attributeFrameType = "profile.frame.type"

var frameTypes = [...]string{arthas.FrameNative: "native", arthas.FrameJava: "jvm", arthas.FrameKernel: "kernel"}

const (
	// maxFunctions limits the functions of a profile.
	maxFunctions = 100_000
	// furtherStacks and furtherFunctions are the names of entries without room.
	furtherStacks    = "(further stacks)"
	furtherFunctions = "(further functions)"

	// The approximate memory of entries of the tables.
	bytesOfFunction = 400
	bytesOfStack    = 320
	bytesOfIndex    = 4
)

// stacks writes the samples of a profile, and the tables that they need.
type stacks struct {
	tables  pprofile.ProfilesDictionary
	profile pprofile.Profile
	event   arthas.ProfilerEvent
	max     int
	// locations and samples are indexes of those that are known. kinds are the attributes of frames.
	locations map[arthas.CollapsedFrame]int32
	samples   map[string]int
	kinds     [len(frameTypes)]int32
	strings   map[string]int32
	// folded counts stacks without room.
	folded int64
	bytes  int
	// current and key are memory to use again.
	current []int32
	key     []byte
}

func newStacks(tables pprofile.ProfilesDictionary, profile pprofile.Profile, most int, event arthas.ProfilerEvent) *stacks {
	profiletables.Begin(tables)
	s := &stacks{
		tables: tables, profile: profile, event: event, max: most, locations: map[arthas.CollapsedFrame]int32{}, samples: map[string]int{}, strings: map[string]int32{"": 0},
	}
	for kind, name := range frameTypes {
		s.kinds[kind] = int32(tables.AttributeTable().Len())
		a := tables.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(s.text(attributeFrameType))
		a.Value().SetStr(name)
	}
	return s
}

// text returns the index of a text.
func (s *stacks) text(text string) int32 {
	if i, known := s.strings[text]; known {
		return i
	}
	i := int32(s.tables.StringTable().Len())
	s.tables.StringTable().Append(text)
	s.strings[text] = i
	return i
}

// add adds a line of the profile. Lines with equal frames are one sample.
func (s *stacks) add(line arthas.CollapsedStack) {
	s.current = s.current[:0]
	for frame := range line.Frames() {
		if s.event == arthas.ProfileAlloc && frame.Kind == arthas.FrameKernel {
			frame.Kind = arthas.FrameJava // a class whose objects are allocated outside of a thread's own memory
		}
		s.current = append(s.current, s.location(frame))
	}
	slices.Reverse(s.current) // the leaf is the first
	at, known := s.sample()
	if !known && len(s.samples) >= s.max {
		s.folded++
		s.current = append(s.current[:0], s.location(arthas.CollapsedFrame{Name: furtherStacks}))
		at, known = s.sample()
	}
	if !known {
		at = s.append()
	}
	values := s.profile.Samples().At(at).Values()
	values.SetAt(0, values.At(0)+line.Value)
}

// sample returns the index of the sample of the current stack.
func (s *stacks) sample() (at int, known bool) {
	s.key = s.key[:0]
	for _, location := range s.current {
		s.key = binary.LittleEndian.AppendUint32(s.key, uint32(location))
	}
	at, known = s.samples[string(s.key)]
	return at, known
}

// append appends a sample of the current stack, and returns its index.
func (s *stacks) append() int {
	at := s.profile.Samples().Len()
	s.samples[string(s.key)] = at
	sample := s.profile.Samples().AppendEmpty()
	sample.SetStackIndex(int32(s.tables.StackTable().Len()))
	sample.Values().Append(0)
	s.tables.StackTable().AppendEmpty().LocationIndices().FromRaw(s.current)
	s.bytes += bytesOfStack + bytesOfIndex*len(s.current)
	return at
}

// location returns the index of a frame: a function without a line.
func (s *stacks) location(frame arthas.CollapsedFrame) int32 {
	if i, known := s.locations[frame]; known {
		return i
	}
	if len(s.locations) >= maxFunctions {
		frame = arthas.CollapsedFrame{Name: furtherFunctions}
		if i, known := s.locations[frame]; known {
			return i
		}
	}
	function := int32(s.tables.FunctionTable().Len())
	s.tables.FunctionTable().AppendEmpty().SetNameStrindex(s.text(frame.Name))
	i := int32(s.tables.LocationTable().Len())
	l := s.tables.LocationTable().AppendEmpty()
	l.Lines().AppendEmpty().SetFunctionIndex(function)
	l.AttributeIndices().Append(s.kinds[frame.Kind])
	s.locations[frame] = i
	s.bytes += bytesOfFunction + len(frame.Name)
	return i
}

// describe writes the type of the values and, if it is configured, the time between samples.
func (s *stacks) describe(config *ProfilesConfig) {
	of := valueTypes[s.event]
	s.profile.SampleType().SetTypeStrindex(s.text(of.kind))
	s.profile.SampleType().SetUnitStrindex(s.text(of.unit))
	if config.Interval > 0 {
		s.profile.PeriodType().SetTypeStrindex(s.text(of.kind))
		s.profile.PeriodType().SetUnitStrindex(s.text(unitNanoseconds))
		s.profile.SetPeriod(config.Interval.Nanoseconds())
	}
}
