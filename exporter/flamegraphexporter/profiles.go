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

	"github.com/callbraid/callbraid/internal/calltree"
)

const (
	// maxInlined is how many functions that were inlined into each other are read of a
	// location: a message can name one location as often as it has bytes.
	maxInlined = 32

	// noFunction is the name of a frame of which nothing is known.
	noFunction = "(unknown)"
)

// consumeProfiles takes all samples. It never fails.
func (g *flameGraph) consumeProfiles(_ context.Context, pd pprofile.Profiles) error {
	r := newProfileReader(pd.Dictionary())
	for _, rp := range pd.ResourceProfiles().All() {
		from := originOf(rp.Resource())
		for _, sp := range rp.ScopeProfiles().All() {
			for _, profile := range sp.Profiles().All() {
				kind := calltree.Kind{
					Type: r.text(profile.SampleType().TypeStrindex()), Unit: r.text(profile.SampleType().UnitStrindex()),
				}
				if kind == calltree.Calls {
					kind.Type = noFunction
				}
				r.fold(g.store, from, kind, profile)
			}
		}
	}
	return nil
}

// profileReader reads samples by the tables of their dictionary, in which indexes may lead
// nowhere.
type profileReader struct {
	tables pprofile.ProfilesDictionary
	// frames are those of locations that were read, the innermost first.
	frames map[int32][]calltree.Frame
	// stack is memory that is used again.
	stack []calltree.Frame
}

func newProfileReader(tables pprofile.ProfilesDictionary) *profileReader {
	return &profileReader{tables: tables, frames: map[int32][]calltree.Frame{}}
}

// sum is what was found of a stack.
type sum struct {
	count uint64
	value int64
}

// fold folds a profile. Samples are added up first, so that each stack is walked once
// however many samples name it.
func (r *profileReader) fold(store *calltree.Store, from calltree.Origin, kind calltree.Kind, profile pprofile.Profile) {
	sums := map[int32]*sum{}
	var order []int32
	for _, sample := range profile.Samples().All() {
		if thread, ok := r.thread(sample.AttributeIndices()); ok {
			store.SeeThreads(from, thread)
		}
		stack := sample.StackIndex()
		if sums[stack] == nil {
			sums[stack] = &sum{}
			order = append(order, stack)
		}
		sums[stack].add(sample)
	}
	for _, stack := range order {
		frames, isCut := r.frameStack(stack)
		store.FoldSamples(from, kind, calltree.Sample{
			Frames: frames, IsCut: isCut, Count: sums[stack].count, Value: sums[stack].value,
		})
	}
}

// add adds a sample: a value for each time that it was taken, or 1 where there is none
// (opentelemetry-proto, message Sample).
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

// frameStack is the frames of a stack, the outermost first, of which those beyond
// [calltree.MaxDepth] are cut. They are valid until the next call.
func (r *profileReader) frameStack(index int32) (frames []calltree.Frame, isCut bool) {
	r.stack = r.stack[:0]
	stacks := r.tables.StackTable()
	if !within(index, stacks.Len()) {
		return r.stack, true
	}
	for _, location := range stacks.At(int(index)).LocationIndices().All() {
		if len(r.stack) > calltree.MaxDepth {
			break
		}
		r.stack = append(r.stack, r.location(location)...)
	}
	if isCut = len(r.stack) > calltree.MaxDepth; isCut {
		r.stack = r.stack[:calltree.MaxDepth]
	}
	slices.Reverse(r.stack)
	return r.stack, isCut
}

// location is the frames of a location: what was inlined first.
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
	mappings := r.tables.MappingTable()
	if location.Address() == 0 {
		return noFunction
	}
	if at := location.MappingIndex(); within(at, mappings.Len()) {
		if file := r.text(mappings.At(int(at)).FilenameStrindex()); file != "" {
			return fmt.Sprintf("%s+0x%x", path.Base(file), location.Address())
		}
	}
	return fmt.Sprintf("0x%x", location.Address())
}

// thread is what attributes say of the thread.
func (r *profileReader) thread(indexes pcommon.Int32Slice) (thread calltree.Thread, ok bool) {
	attributes := r.tables.AttributeTable()
	for _, index := range indexes.All() {
		if !within(index, attributes.Len()) {
			continue
		}
		switch a := attributes.At(int(index)); r.text(a.KeyStrindex()) {
		case attributeThreadID:
			thread.ID, ok = a.Value().Int(), a.Value().Type() == pcommon.ValueTypeInt
		case attributeThreadName:
			thread.Name = a.Value().Str()
		}
	}
	return thread, ok
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
