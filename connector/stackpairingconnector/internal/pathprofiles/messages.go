// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pathprofiles

import (
	"iter"
	"math/bits"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/callbraid/callbraid/internal/componentkit/profiletables"
)

// kinds are the types of the profiles of an origin.
var kinds = [...]struct{ name, unit uint32 }{
	kindCalls: {textCalls, textCount}, kindErrors: {textErrors, textCount}, kindWall: {textWall, textNanoseconds},
}

const (
	kindCalls = iota
	kindErrors
	kindWall
)

// Messages returns the profiles of the interval between two times. It makes each message when the
// caller asks for it.
//
//  1. The samples of an origin stay in their order, in which callers mostly stand before their
//     callees. So neighbours share most functions.
//  2. A sample that has no room in a message begins the next one. All values of a sample are in one
//     message.
//  3. A message has only what its samples refer to.
func (g *Growth) Messages(from, to pcommon.Timestamp) iter.Seq[pprofile.Profiles] {
	return func(yield func(pprofile.Profiles) bool) {
		g.merge()
		w := &writer{growth: g, from: from, to: to, left: g.samples}
		w.begin()
		for _, of := range g.origins {
			for i := range of.all {
				s := &of.all[i]
				size := w.size(of, s)
				if w.samples > 0 && w.bytes+size > g.settings.MaxMessageBytes {
					if !yield(w.end()) {
						return
					}
					w.begin()
					size = w.size(of, s)
				}
				w.bytes += size
				w.append(of, s)
			}
		}
		if w.samples > 0 {
			yield(w.end())
		}
	}
}

// SampleCount returns the number of samples of all messages.
func (g *Growth) SampleCount() (n int) {
	g.merge()
	for _, of := range g.origins {
		for i := range of.all {
			for _, value := range of.all[i].profiled() {
				if value > 0 {
					n++
				}
			}
		}
	}
	return n
}

// writer writes one message after the other.
type writer struct {
	growth   *Growth
	from, to pcommon.Timestamp

	message pprofile.Profiles
	tables  pprofile.ProfilesDictionary
	// bytes is at least the size of the message as protobuf.
	bytes   int
	samples int
	// left is the number of samples that no message has yet.
	left int
	// textAt, functionAt, stackAt and laneAt are the indexes of the growth's texts, functions, nodes
	// and lanes in the message; 0: they are not in it. A function has one location, with the same index.
	textAt, functionAt, stackAt []int32
	laneAt                      []laneAttributes
	// idAt and nameAt are the attributes of lanes by their values. Lanes can share an ID or a name.
	idAt   map[int64]int32
	nameAt map[string]int32
	// truncated and callPaths are indexes of attributes; 0: they are not in the message.
	truncated, callPaths int32

	// of are the samples whose origin is the last one in the message.
	of       *samples
	profiles pprofile.ProfilesSlice
	kinds    [len(kinds)]pprofile.Profile

	// frames are the functions of the current stack, the innermost first. locations and attributes
	// are memory to use again.
	frames                []uint32
	locations, attributes []int32
	// countedAt has, for each function, the number of the size that counted it last.
	countedAt []uint32
	sizes     uint32
}

// laneAttributes are the indexes of the attributes of a lane; 0: it has none.
type laneAttributes struct{ id, name int32 }

func (w *writer) begin() {
	g := w.growth
	*w = writer{
		growth: g, from: w.from, to: w.to, left: w.left, message: pprofile.NewProfiles(), bytes: bytesOfMessage,
		textAt: cleared(w.textAt, len(g.texts)), functionAt: cleared(w.functionAt, len(g.functions)),
		stackAt: cleared(w.stackAt, len(g.nodes)), laneAt: cleared(w.laneAt, len(g.lanes)),
		frames: w.frames, locations: w.locations, attributes: w.attributes,
		countedAt: cleared(w.countedAt, len(g.functions)),
		idAt:      map[int64]int32{}, nameAt: map[string]int32{},
	}
	w.tables = w.message.Dictionary()
	profiletables.Begin(w.tables)
	w.reserve()
}

// About the bytes of a stack with its samples, and of a function with its location and its name, as protobuf.
const (
	aboutStack    = 48
	aboutFunction = 96
)

// reserve makes room in the tables for about as many stacks and functions as the message will have.
func (w *writer) reserve() {
	most := w.growth.settings.MaxMessageBytes
	stacks := min(w.left+1, most/aboutStack)
	functions := min(w.left+1, len(w.growth.functions), most/aboutFunction)
	w.tables.StackTable().EnsureCapacity(stacks)
	w.tables.FunctionTable().EnsureCapacity(functions)
	w.tables.LocationTable().EnsureCapacity(functions)
	w.tables.StringTable().EnsureCapacity(functions + len(fixedTexts))
}

// cleared returns n zeros, in the memory of s if it has room.
func cleared[E any](s []E, n int) []E {
	if cap(s) < n {
		return make([]E, n)
	}
	clear(s[:n])
	return s[:n]
}

// end returns the message.
func (w *writer) end() pprofile.Profiles {
	w.endOrigin()
	return w.message
}

func (w *writer) append(of *samples, s *sample) {
	if w.of != of {
		w.endOrigin()
		w.beginOrigin(of)
	}
	w.samples++
	w.left--
	stack := w.stack(s.node)
	attributes := w.sampleAttributes(s)
	for kind, value := range s.profiled() {
		if value > 0 {
			to := w.kinds[kind].Samples().AppendEmpty()
			to.SetStackIndex(stack)
			to.Values().Append(value)
			if len(attributes) > 0 {
				to.AttributeIndices().FromRaw(attributes)
			}
		}
	}
}

// profiled are the values of a sample in the order of kinds.
func (s *sample) profiled() [len(kinds)]int64 {
	return [...]int64{kindCalls: int64(s.values.Calls), kindErrors: int64(s.values.Errors), kindWall: s.values.Self}
}

func (w *writer) beginOrigin(of *samples) {
	w.of = of
	rp := w.message.ResourceProfiles().AppendEmpty()
	of.origin.Resource.CopyTo(rp.Resource())
	rp.SetSchemaUrl(of.origin.ResourceSchemaURL)
	scope := rp.ScopeProfiles().AppendEmpty()
	of.origin.Scope.CopyTo(scope.Scope())
	scope.SetSchemaUrl(of.origin.ScopeSchemaURL)
	w.profiles = scope.Profiles()
	for i := range w.kinds {
		w.kinds[i] = pprofile.NewProfile()
	}
	// Nearly all samples have calls and time. Few have errors, so their profile reserves nothing.
	n := min(len(of.all), w.left, w.growth.settings.MaxMessageBytes/aboutStack)
	w.kinds[kindCalls].Samples().EnsureCapacity(n)
	w.kinds[kindWall].Samples().EnsureCapacity(n)
}

// endOrigin writes the profiles of the last origin that have samples.
func (w *writer) endOrigin() {
	if w.of == nil {
		return
	}
	if w.callPaths == 0 {
		w.callPaths = w.attribute(textCallPaths)
		w.tables.AttributeTable().At(int(w.callPaths)).Value().SetBool(true)
	}
	for i, kind := range kinds {
		if w.kinds[i].Samples().Len() == 0 {
			continue
		}
		p := w.profiles.AppendEmpty()
		w.kinds[i].MoveTo(p)
		p.SampleType().SetTypeStrindex(w.text(kind.name))
		p.SampleType().SetUnitStrindex(w.text(kind.unit))
		p.SetTime(w.from)
		p.SetDurationNano(uint64(max(w.from, w.to) - w.from))
		p.SetProfileID(w.growth.settings.NewID())
		p.AttributeIndices().Append(w.callPaths)
	}
}

// stack returns the index of the stack of a node. size has found its frames.
func (w *writer) stack(of uint32) int32 {
	if at := w.stackAt[of]; at != 0 {
		return at
	}
	w.locations = w.locations[:0]
	for _, f := range w.frames {
		w.locations = append(w.locations, w.location(f))
	}
	at := int32(w.tables.StackTable().Len())
	w.tables.StackTable().AppendEmpty().LocationIndices().FromRaw(w.locations)
	w.stackAt[of] = at
	return at
}

// location returns the index of a function and of its location. The line in the function is
// unknown.
func (w *writer) location(of uint32) int32 {
	if at := w.functionAt[of]; at != 0 {
		return at
	}
	known := &w.growth.functions[of]
	at := int32(w.tables.FunctionTable().Len())
	f := w.tables.FunctionTable().AppendEmpty()
	f.SetNameStrindex(w.text(known.name))
	f.SetSystemNameStrindex(f.NameStrindex())
	f.SetFilenameStrindex(w.text(known.file))
	f.SetStartLine(int64(known.line))
	w.tables.LocationTable().AppendEmpty().Lines().AppendEmpty().SetFunctionIndex(at)
	w.functionAt[of] = at
	return at
}

// text returns the index of a text. The empty one has the index 0.
func (w *writer) text(of uint32) int32 {
	if of == textNone {
		return 0
	}
	if at := w.textAt[of]; at != 0 {
		return at
	}
	at := int32(w.tables.StringTable().Len())
	w.tables.StringTable().Append(w.growth.texts[of])
	w.textAt[of] = at
	return at
}

// attribute appends an attribute without a value, and returns its index.
func (w *writer) attribute(key uint32) int32 {
	at := int32(w.tables.AttributeTable().Len())
	w.tables.AttributeTable().AppendEmpty().SetKeyStrindex(w.text(key))
	return at
}

// sampleAttributes returns the indexes of the attributes of a sample.
func (w *writer) sampleAttributes(s *sample) []int32 {
	w.attributes = w.attributes[:0]
	if s.lane != 0 {
		at := w.lane(s.lane)
		if at.id != 0 {
			w.attributes = append(w.attributes, at.id)
		}
		if at.name != 0 {
			w.attributes = append(w.attributes, at.name)
		}
	}
	if s.isTruncated {
		if w.truncated == 0 {
			w.truncated = w.attribute(textTruncated)
			w.tables.AttributeTable().At(int(w.truncated)).Value().SetBool(true)
		}
		w.attributes = append(w.attributes, w.truncated)
	}
	return w.attributes
}

func (w *writer) lane(of uint32) laneAttributes {
	at, l := &w.laneAt[of], &w.growth.lanes[of]
	if at.id == 0 && l.isThread {
		known, ok := w.idAt[l.id]
		if !ok {
			known = w.attribute(textThreadID)
			w.tables.AttributeTable().At(int(known)).Value().SetInt(l.id)
			w.idAt[l.id] = known
		}
		at.id = known
	}
	if at.name == 0 && l.name != "" {
		known, ok := w.nameAt[l.name]
		if !ok {
			known = w.attribute(textThreadName)
			w.tables.AttributeTable().At(int(known)).Value().SetStr(l.name)
			w.nameAt[l.name] = known
		}
		at.name = known
	}
	return *at
}

// The most bytes of parts of a message as protobuf: of its fixed parts with all fixed texts, of the
// profiles of an origin, and of an attribute beside its text.
const (
	bytesOfMessage   = 512
	bytesOfProfiles  = 512
	bytesOfAttribute = 48
)

// size returns the most bytes that a sample adds to the message, and finds the frames of its stack if
// the message does not have it.
func (w *writer) size(of *samples, s *sample) int {
	bytes := 0
	if w.of != of {
		// The exporter replaces the texts of attributes by indexes. Origin.Bytes has room for them.
		bytes += bytesOfProfiles + of.origin.Bytes
	}
	if w.stackAt[s.node] == 0 {
		bytes += w.sizeOfStack(s.node)
	}
	attributes := 0
	if s.lane != 0 {
		attributes += 2
		if w.laneAt[s.lane] == (laneAttributes{}) {
			bytes += 2*bytesOfAttribute + len(w.growth.lanes[s.lane].name)
		}
	}
	if s.isTruncated {
		attributes++
		if w.truncated == 0 {
			bytes += bytesOfAttribute
		}
	}
	for _, value := range s.profiled() {
		if value > 0 {
			bytes += nested(field(len(w.growth.nodes)) + nested(varint(uint64(value))) + nested(attributes*varint(uint64(3+2*len(w.growth.lanes)))))
		}
	}
	return bytes
}

// sizeOfStack returns the most bytes of a stack, with the functions that the message does not have.
func (w *writer) sizeOfStack(of uint32) (bytes int) {
	g := w.growth
	w.sizes++
	w.frames = w.frames[:0]
	indexes := 0
	for n := of; n != 0; n = g.nodes[n].parent {
		f := g.nodes[n].function
		w.frames = append(w.frames, f)
		if at := w.functionAt[f]; at != 0 {
			indexes += varint(uint64(at))
			continue
		}
		indexes += varint(uint64(len(g.functions)))
		if w.countedAt[f] != w.sizes {
			w.countedAt[f] = w.sizes
			bytes += w.sizeOfFunction(&g.functions[f])
		}
	}
	return bytes + nested(nested(indexes))
}

func (w *writer) sizeOfFunction(f *function) int {
	bytes := nested(3*field(len(w.growth.texts))+field(int(f.line))) + nested(nested(field(len(w.growth.functions))))
	for _, text := range [...]uint32{f.name, f.file} {
		if text != textNone && w.textAt[text] == 0 {
			bytes += nested(len(w.growth.texts[text]))
		}
	}
	return bytes
}

// varint is the size of a number, field that of a number with its tag, and nested that of a message
// or a text with its tag and its length.
func varint(n uint64) int  { return (bits.Len64(n|1) + 6) / 7 }
func field(n int) int      { return 1 + varint(uint64(n)) }
func nested(bytes int) int { return 1 + varint(uint64(bytes)) + bytes }
