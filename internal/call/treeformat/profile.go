// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"github.com/google/pprof/profile"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// The sample types of call trees. Users choose one with pprof's -sample_index, or with si= on its
// pages.
const (
	sampleCalls  = "calls"
	sampleErrors = "errors"
	sampleTime   = "time"
	// sampleSamples is the sample type beside the kind's own in trees of profiles.
	sampleSamples = "samples"

	unitCount       = "count"
	unitNanoseconds = "nanoseconds"
)

// Value is one of the values of nodes. The zero Value is self time, or a profile's value.
type Value struct {
	of func(*calltree.Node) int64
	// column is the position of the value in a profile's samples.
	column int
}

// SampleValue returns the value of a sample type of [Profile], by its name or number. The empty
// name is the default type. It fails if there is no such type.
func SampleValue(kind calltree.Kind, sampleType string) (Value, error) {
	types, values := sampleTypes(kind)
	p := profile.Profile{SampleType: types, DefaultSampleType: defaultType(types)}
	column, err := p.SampleIndexByName(sampleType)
	if err != nil {
		return Value{}, err
	}
	return Value{of: values[column], column: column}, nil
}

// SampleTypes returns the sample types of a kind. Their names select a [Value].
func SampleTypes(kind calltree.Kind) []*profile.ValueType {
	types, _ := sampleTypes(kind)
	return types
}

// Column is the position of the value's type in [SampleTypes].
func (v Value) Column() int { return v.column }

func (v Value) function() func(*calltree.Node) int64 {
	if v.of == nil {
		return selfOf
	}
	return v.of
}

// sampleTypes returns the sample types of a kind, and the value of a node for each.
func sampleTypes(kind calltree.Kind) ([]*profile.ValueType, []func(*calltree.Node) int64) {
	if kind == calltree.Calls {
		return []*profile.ValueType{
			{Type: sampleCalls, Unit: unitCount},
			{Type: sampleErrors, Unit: unitCount},
			{Type: sampleTime, Unit: unitNanoseconds},
		}, []func(*calltree.Node) int64{callsOf, errorsOf, selfOf}
	}
	own := &profile.ValueType{Type: Name(kind.Type), Unit: Printable(kind.Unit)}
	if own.Type == sampleSamples {
		return []*profile.ValueType{own}, []func(*calltree.Node) int64{selfOf}
	}
	return []*profile.ValueType{{Type: sampleSamples, Unit: unitCount}, own},
		[]func(*calltree.Node) int64{callsOf, selfOf}
}

// defaultType is the sample type without a choice.
func defaultType(types []*profile.ValueType) string { return types[len(types)-1].Type }

// Profile returns the snapshot as a profile of pprof. It has a sample for each path, with the
// number of calls that ended in it, the number of failed ones, and its self time. Trees of profiles
// have the number of samples and the value. Self time is the default, and pprof's cumulative values
// are sums of it.
//
// Every path is a stack of its own here, so callers reduce the snapshot first: see [Reduce].
func Profile(s calltree.Snapshot) *profile.Profile {
	b := newProfileBuilder(s)
	b.addSamples(s.Nodes)
	return b.p
}

// profileBuilder is a profile that is being built.
type profileBuilder struct {
	p         *profile.Profile
	mapping   *profile.Mapping
	values    []func(*calltree.Node) int64
	locations map[place]*profile.Location
	functions map[function]*profile.Function
}

// newProfileBuilder returns a builder without samples for the snapshot.
func newProfileBuilder(s calltree.Snapshot) *profileBuilder {
	types, values := sampleTypes(s.Kind)
	// All names are known, so pprof does not search for symbols in a file.
	mapping := &profile.Mapping{
		ID: 1, File: Name(s.Service),
		HasFunctions: true, HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true,
	}
	return &profileBuilder{
		p: &profile.Profile{
			SampleType:        types,
			DefaultSampleType: defaultType(types),
			PeriodType:        types[len(types)-1],
			Period:            1,
			TimeNanos:         s.From.UnixNano(),
			DurationNanos:     max(s.To.Sub(s.From).Nanoseconds(), 0),
			Mapping:           []*profile.Mapping{mapping},
		},
		mapping:   mapping,
		values:    values,
		locations: map[place]*profile.Location{},
		functions: map[function]*profile.Function{},
	}
}

func (b *profileBuilder) addSamples(nodes []calltree.Node) {
	depths := depthsOf(nodes)
	samples, frames := 0, 0
	for i := range nodes {
		if hasValue(&nodes[i]) {
			samples++
			frames += int(depths[i])
		}
	}
	// Three allocations for all samples, instead of three for each.
	var (
		all    = make([]profile.Sample, samples)
		values = make([]int64, samples*len(b.values))
		stacks = make([]*profile.Location, frames)
	)
	b.p.Sample = make([]*profile.Sample, 0, samples)
	stack := make([]*profile.Location, 0, 64) // of the current node, from the top
	for i := range nodes {
		n := &nodes[i]
		stack = append(stack[:depths[i]-1], b.location(n))
		if !hasValue(n) {
			continue
		}
		sample := &all[len(b.p.Sample)]
		sample.Value, values = values[:len(b.values):len(b.values)], values[len(b.values):]
		for v, of := range b.values {
			sample.Value[v] = of(n)
		}
		sample.Location, stacks = stacks[:len(stack):len(stack)], stacks[len(stack):]
		for j, l := range stack { // pprof expects callees first
			sample.Location[len(stack)-1-j] = l
		}
		b.p.Sample = append(b.p.Sample, sample)
	}
}

// hasValue reports whether calls or samples ended in the node's path itself.
func hasValue(n *calltree.Node) bool {
	return n.Calls != 0 || n.Errors != 0 || n.Self != 0
}

func (b *profileBuilder) location(n *calltree.Node) *profile.Location {
	key := placeOf(n)
	l, ok := b.locations[key]
	if !ok {
		l = &profile.Location{
			ID:      uint64(len(b.p.Location) + 1),
			Mapping: b.mapping,
			Line:    []profile.Line{{Function: b.function(key.function, n), Line: n.Line}},
		}
		b.locations[key] = l
		b.p.Location = append(b.p.Location, l)
	}
	return l
}

func (b *profileBuilder) function(key function, n *calltree.Node) *profile.Function {
	f, ok := b.functions[key]
	if !ok {
		// SystemName, the name before symbols are looked up, stays empty. If it equals the name,
		// pprof removes text in < and > as parameters of C++ templates.
		f = &profile.Function{ID: uint64(len(b.p.Function) + 1), Name: nameOf(n), Filename: Printable(key.file)}
		b.functions[key] = f
		b.p.Function = append(b.p.Function, f)
	}
	return f
}
