// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"context"
	"fmt"
	"path"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

const (
	// maxInlined is how many functions that were inlined into each other are read of a
	// location: a message can name one location as often as it has bytes.
	maxInlined = 32

	// A message can name one stack as often as it has services and kinds, and each location
	// of it by a byte. So how many frames are read of a message is bounded by its size:
	// framesOfByte for each byte, and someFrames that each message may have. Of stacks beyond
	// leastFrames are read, the innermost.
	framesOfByte = 4
	someFrames   = 100_000
	leastFrames  = 8

	// noFunction is the name of an unknown frame.
	noFunction = "(unknown)"

	// attributeClass has the class of sampled objects, which becomes the last frame of the
	// stack.
	attributeClass = "ruby.class"
	// noAttribute is no index.
	noAttribute = -1

	// threadsAtOnce is the number of threads that are reported together.
	threadsAtOnce = 512
)

// consumeProfiles folds all samples. It never fails.
func (g *flameGraph) consumeProfiles(_ context.Context, pd pprofile.Profiles) error {
	r := newProfileReader(pd, g.config.MaxNameBytes)
	r.versions = g.config.VersionAttribute
	r.recent = &g.recent
	r.read(g.store, pd)
	r.fold(g.store)
	g.logBounds()
	return nil
}

// profileReader reads samples by the tables of their dictionary. An index may be outside of its
// table.
type profileReader struct {
	tables pprofile.ProfilesDictionary
	// mostName bounds the bytes that are read of a text. A message can refer to a text often,
	// with few bytes.
	mostName int
	// versions is the resource attribute with versions of services; empty: none.
	versions string
	// sources are the sources of samples, and numbers their numbers.
	sources []source
	numbers map[source]int32
	// threads are those that were not reported yet.
	threads []calltree.Thread
	// objects are the names of mappings that were read.
	objects map[int32]string
	// frames are those of locations that were read, the innermost first.
	frames map[int32][]calltree.Frame
	// sums are the sums of stacks, and found their order.
	sums  map[sampled]*sum
	found []sampled
	// stack is memory to use again.
	stack []calltree.Frame
	// paths read call paths, and recent are the IDs of their profiles; nil: none.
	paths  *callPaths
	recent *recentProfiles
	// left is the number of further frames that may be read.
	left int
}

func newProfileReader(pd pprofile.Profiles, mostName int) *profileReader {
	return &profileReader{
		tables: pd.Dictionary(), mostName: mostName, numbers: map[source]int32{}, objects: map[int32]string{},
		frames: map[int32][]calltree.Frame{}, sums: map[sampled]*sum{},
		left: someFrames + framesOfByte*sizeOf(pd),
	}
}

// sizeOf returns about the size in bytes of the samples of a message, and of the tables behind
// them, as protobuf. It ignores attributes: senders may nest their values as deep as the message
// has bytes, and measuring would recurse as deep.
func sizeOf(pd pprofile.Profiles) (bytes int) {
	// A nested message needs a tag and a length, a number in a list one byte or more, and a number
	// by itself one more for its tag.
	const message, number, field = 2, 1, 2
	tables := pd.Dictionary()
	for _, text := range tables.StringTable().All() {
		bytes += message + len(text)
	}
	for _, stack := range tables.StackTable().All() {
		bytes += message + number*stack.LocationIndices().Len()
	}
	for _, location := range tables.LocationTable().All() {
		bytes += message + (message+field)*location.Lines().Len()
	}
	bytes += (message + field) * (tables.FunctionTable().Len() + tables.MappingTable().Len())
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, profile := range sp.Profiles().All() {
				bytes += message
				for _, sample := range profile.Samples().All() {
					bytes += message + field + number*(sample.AttributeIndices().Len()+sample.Values().Len()+sample.TimestampsUnixNano().Len())
				}
			}
		}
	}
	return bytes
}

// source is a service with the kind of its samples.
type source struct {
	service string
	kind    calltree.Kind
}

// sampled is a sampled stack: its index, the number of its source, and the index of the
// attribute with the class of sampled objects, if any.
type sampled struct{ source, stack, class int32 }

// sum is the sum of a stack.
type sum struct {
	count uint64
	value int64
}

// read adds up the samples of all profiles. They are folded later, so that each stack is
// walked once in a message however many samples, threads and profiles name it. Call paths are
// folded after each resource.
func (r *profileReader) read(store *calltree.Store, pd pprofile.Profiles) {
	for _, rp := range pd.ResourceProfiles().All() {
		from := originOf(rp.Resource(), r.versions)
		from.Service = calltree.Cut(from.Service, r.mostName)
		for _, sp := range rp.ScopeProfiles().All() {
			for _, profile := range sp.Profiles().All() {
				r.readProfile(store, from, profile)
			}
		}
		if r.paths != nil {
			r.paths.fold(store, from)
		}
	}
}

func (r *profileReader) readProfile(store *calltree.Store, from calltree.Origin, profile pprofile.Profile) {
	kind := r.kind(profile.SampleType())
	if of, ok := r.pathValueOf(profile, kind); ok {
		r.readPaths(store, from, profile, of)
		return
	}
	at := sampled{source: r.number(source{service: from.Service, kind: kind})}
	for _, sample := range profile.Samples().All() {
		said := r.attributes(sample.AttributeIndices())
		if said.hasThread {
			if r.threads = append(r.threads, said.thread); len(r.threads) == threadsAtOnce {
				r.reportThreads(store, from)
			}
		}
		at.stack, at.class = sample.StackIndex(), said.class
		if r.sums[at] == nil {
			r.sums[at] = &sum{}
			r.found = append(r.found, at)
		}
		r.sums[at].add(sample)
	}
	r.reportThreads(store, from)
}

// readPaths adds up the call paths of a profile, unless it arrived before.
func (r *profileReader) readPaths(store *calltree.Store, from calltree.Origin, profile pprofile.Profile, of pathValue) {
	if r.recent != nil && !r.recent.isFirst(profile.ProfileID(), of) {
		return
	}
	if r.paths == nil {
		r.paths = newCallPaths(r)
	}
	r.paths.add(store, from, profile, of)
}

// reportThreads reports threads to the store.
func (r *profileReader) reportThreads(store *calltree.Store, from calltree.Origin) {
	if len(r.threads) > 0 {
		store.SeeThreads(from, r.threads...)
		r.threads = r.threads[:0]
	}
}

// number is the number of a source.
func (r *profileReader) number(of source) int32 {
	n, ok := r.numbers[of]
	if !ok {
		n = int32(len(r.sources))
		r.numbers[of] = n
		r.sources = append(r.sources, of)
	}
	return n
}

// fold folds the samples that were read.
func (r *profileReader) fold(store *calltree.Store) {
	for _, at := range r.found {
		frames, isCut := r.frameStack(at.stack)
		if at.class != noAttribute {
			class := r.tables.AttributeTable().At(int(at.class)).Value().Str()
			isCut = isCut || len(frames) == 0
			frames = append(frames, calltree.Frame{Function: class})
		}
		from := &r.sources[at.source]
		store.FoldSamples(calltree.Origin{Service: from.service}, from.kind, calltree.Sample{
			Frames: frames, IsCut: isCut, Count: r.sums[at].count, Value: r.sums[at].value,
		})
	}
}

func (r *profileReader) kind(of pprofile.ValueType) calltree.Kind {
	kind := calltree.Kind{
		Type: calltree.Cut(r.text(of.TypeStrindex()), r.mostName), Unit: calltree.Cut(r.text(of.UnitStrindex()), r.mostName),
	}
	if kind == calltree.Calls {
		kind.Type = noFunction
	}
	return kind
}

// add adds a sample: a value for each time of it, or 1 if it has none (opentelemetry-proto, message
// Sample).
func (s *sum) add(sample pprofile.Sample) {
	values, times := sample.Values(), sample.TimestampsUnixNano().Len()
	if values.Len() == 0 {
		s.count += uint64(times)
		s.value += int64(times)
		return
	}
	s.count += uint64(values.Len())
	for _, v := range values.All() {
		s.value += v
	}
}

// frameStack returns the frames of a stack, the outermost first. It cuts frames beyond
// [calltree.MaxDepth], and beyond the number that may be read. The result is valid until the next
// call.
func (r *profileReader) frameStack(index int32) (frames []calltree.Frame, isCut bool) {
	r.stack = r.stack[:0]
	stacks := r.tables.StackTable()
	if !within(index, stacks.Len()) {
		return r.stack, true
	}
	most := min(calltree.MaxDepth, max(leastFrames, r.left))
	for _, location := range stacks.At(int(index)).LocationIndices().All() {
		if len(r.stack) > most {
			break
		}
		r.stack = append(r.stack, r.location(location)...)
	}
	r.left -= len(r.stack)
	if isCut = len(r.stack) > most; isCut {
		r.stack = r.stack[:most]
	}
	slices.Reverse(r.stack)
	return r.stack, isCut
}

// location returns the frames of a location: inlined functions first.
func (r *profileReader) location(index int32) []calltree.Frame {
	if known, ok := r.frames[index]; ok {
		return known
	}
	frames := r.readLocation(index)
	r.frames[index] = frames
	return frames
}

func (r *profileReader) readLocation(index int32) (frames []calltree.Frame) {
	locations := r.tables.LocationTable()
	if !within(index, locations.Len()) {
		return []calltree.Frame{{Function: noFunction}}
	}
	location := locations.At(int(index))
	lines := location.Lines()
	for i := range min(lines.Len(), maxInlined) {
		frames = append(frames, r.line(lines.At(i)))
	}
	if len(frames) == 0 {
		frames = append(frames, calltree.Frame{Function: r.address(location)})
	}
	return frames
}

// line is the frame of a function. Its line is the one where the function begins, since
// calls of all its lines are one path.
func (r *profileReader) line(line pprofile.Line) calltree.Frame {
	functions := r.tables.FunctionTable()
	if !within(line.FunctionIndex(), functions.Len()) {
		return calltree.Frame{Function: noFunction}
	}
	f := functions.At(int(line.FunctionIndex()))
	frame := calltree.Frame{Function: r.text(f.NameStrindex()), File: r.text(f.FilenameStrindex()), Line: f.StartLine()}
	if frame.Function == "" {
		frame.Function = r.text(f.SystemNameStrindex())
	}
	if frame.Function == "" {
		frame.Function = noFunction
	}
	if frame.Line == 0 {
		frame.Line = line.Line()
	}
	return frame
}

// address is the name of a frame of which only the address is known: the object that it is
// in, and the address in it.
func (r *profileReader) address(location pprofile.Location) string {
	if location.Address() == 0 {
		return noFunction
	}
	if object := r.object(location.MappingIndex()); object != "" {
		return fmt.Sprintf("%s+0x%x", object, location.Address())
	}
	return fmt.Sprintf("0x%x", location.Address())
}

// object is the name of a mapping, without its directory; empty: it has none.
func (r *profileReader) object(mapping int32) string {
	mappings := r.tables.MappingTable()
	if !within(mapping, mappings.Len()) {
		return ""
	}
	name, ok := r.objects[mapping]
	if !ok {
		if file := r.text(mappings.At(int(mapping)).FilenameStrindex()); file != "" {
			name = calltree.Cut(path.Base(file), r.mostName)
		}
		r.objects[mapping] = name
	}
	return name
}

// attributes are the attributes of a sample that the exporter reads.
type attributes struct {
	thread    calltree.Thread
	hasThread bool
	// class is the index of the attribute that has one, or noAttribute.
	class int32
	// truncated: the ends of the calls were not seen.
	truncated bool
}

func (r *profileReader) attributes(indexes pcommon.Int32Slice) attributes {
	said := attributes{class: noAttribute}
	table := r.tables.AttributeTable()
	for _, index := range indexes.All() {
		if !within(index, table.Len()) {
			continue
		}
		switch a := table.At(int(index)); r.text(a.KeyStrindex()) {
		case attributeThreadID:
			said.thread.ID, said.hasThread = a.Value().Int(), a.Value().Type() == pcommon.ValueTypeInt
		case attributeThreadName:
			said.thread.Name = a.Value().Str()
		case attributeTruncated:
			said.truncated = a.Value().Type() != pcommon.ValueTypeBool || a.Value().Bool()
		case attributeClass:
			if a.Value().Type() == pcommon.ValueTypeStr {
				said.class = index
			}
		}
	}
	return said
}

// text is a text of the dictionary; where the index leads nowhere it is empty.
func (r *profileReader) text(index int32) string {
	if !within(index, r.tables.StringTable().Len()) {
		return ""
	}
	return r.tables.StringTable().At(int(index))
}

// within reports whether a table of so many entries has one of the index.
func within(index int32, length int) bool { return index >= 0 && int(index) < length }
