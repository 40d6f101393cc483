// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf2

import (
	"encoding/json"
	"fmt"
	"math/big"
	"sort"
	"strconv"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// object is a JSON object and its position.
type object struct {
	value map[string]any
	where metadata.Position
	path  string
}

// value is any JSON value and its position.
type value struct {
	value any
	where metadata.Position
	path  string
}

// fail stops the parser with an error at the value.
func (v value) fail(expected, format string, args ...any) {
	panic(&metadata.Error{Where: v.where, Path: v.path, Expected: expected, Got: fmt.Sprintf(format, args...)})
}

func (o object) fail(expected, format string, args ...any) {
	value{where: o.where, path: o.path}.fail(expected, format, args...)
}

// described returns the kind of the value for errors.
func (v value) described() string {
	switch x := v.value.(type) {
	case nil:
		return "nothing"
	case bool:
		return strconv.FormatBool(x)
	case string:
		return "a string"
	case json.Number:
		return "the number " + x.String()
	case []any:
		return "an array"
	}
	return "an object"
}

// has reports whether there is a property of that name that is not null.
func (o object) has(name string) bool { return o.value[name] != nil }

// get returns a property. Its value is nil if there is none.
func (o object) get(name string) value {
	path := name
	if o.path != "" {
		path = o.path + "." + name
	}
	return value{value: o.value[name], where: o.where, path: path}
}

// text returns a property that must be a string.
func (o object) text(name string) string { return o.get(name).text() }

// textOr returns a property that is a string, or other if there is none.
func (o object) textOr(name, other string) string {
	if !o.has(name) {
		return other
	}
	return o.text(name)
}

// unsignedOr returns a property that is a number of 0 to 2^64-1, or other if there is none.
func (o object) unsignedOr(name string, other uint64) uint64 {
	if !o.has(name) {
		return other
	}
	return o.get(name).unsigned()
}

func (v value) text() string {
	s, ok := v.value.(string)
	if !ok {
		v.fail("a string", "%s", v.described())
	}
	return s
}

func (v value) object() object {
	m, ok := v.value.(map[string]any)
	if !ok {
		v.fail("an object", "%s", v.described())
	}
	return object{value: m, where: v.where, path: v.path}
}

// array returns the elements, or none if there is no value.
func (v value) array() []value {
	if v.value == nil {
		return nil
	}
	elements, ok := v.value.([]any)
	if !ok {
		v.fail("an array", "%s", v.described())
	}
	values := make([]value, len(elements))
	for i, e := range elements {
		values[i] = value{value: e, where: v.where, path: fmt.Sprintf("%s[%d]", v.path, i)}
	}
	return values
}

// number returns an integer of up to 64 bits and a sign. In JSON, 1e3 and 3.0 are integers too.
func (v value) number() metadata.Number {
	text, ok := v.value.(json.Number)
	if !ok {
		v.fail("an integer", "%s", v.described())
	}
	if n, err := strconv.ParseUint(text.String(), 10, 64); err == nil {
		return metadata.Number{Magnitude: n}
	}
	if len(text) > maxNumberText {
		v.fail("an integer of at most 64 bits", "%d digits", len(text))
	}
	n, ok := new(big.Int).SetString(text.String(), 10)
	if !ok {
		f, err := text.Float64()
		whole := new(big.Float)
		if err != nil || f != f || f > 1<<64 || f < -1<<64 {
			v.fail("an integer of at most 64 bits", "%s", text)
		}
		var accuracy big.Accuracy
		if n, accuracy = whole.SetFloat64(f).Int(nil); accuracy != big.Exact {
			v.fail("an integer", "%s", text)
		}
	}
	if n.BitLen() > 64 {
		v.fail("an integer of at most 64 bits", "%s", text)
	}
	return metadata.Number{Negative: n.Sign() < 0, Magnitude: new(big.Int).Abs(n).Uint64()}
}

// maxNumberText is the maximum length of the text of a number.
const maxNumberText = 64

func (v value) unsigned() uint64 {
	n, ok := v.number().Uint64()
	if !ok {
		v.fail("an integer of 0 or more", "%s", v.number())
	}
	return n
}

func (v value) signed() int64 {
	n, ok := v.number().Int64()
	if !ok {
		v.fail("an integer of 64 bits with sign", "%s", v.number())
	}
	return n
}

// ranges returns a set of integer ranges: [[low, high], …].
func (v value) ranges() []metadata.Range {
	var ranges []metadata.Range
	for _, pair := range v.array() {
		bounds := pair.array()
		if len(bounds) != 2 {
			pair.fail("an array of two integers", "%d elements", len(bounds))
		}
		r := metadata.Range{Low: bounds[0].number(), High: bounds[1].number()}
		if r.Low.Compare(r.High) > 0 {
			pair.fail("a range from low to high", "%s to %s", r.Low, r.High)
		}
		ranges = append(ranges, r)
	}
	if len(ranges) == 0 {
		v.fail("one or more ranges", "%s", v.described())
	}
	return ranges
}

// mappings returns names and their ranges, sorted by name, because an object has no order.
func (v value) mappings() []metadata.Mapping {
	if v.value == nil {
		return nil
	}
	o := v.object()
	names := make([]string, 0, len(o.value))
	for name := range o.value {
		names = append(names, name)
	}
	sort.Strings(names)
	mappings := make([]metadata.Mapping, 0, len(names))
	for _, name := range names {
		mappings = append(mappings, metadata.Mapping{Label: name, Ranges: o.get(name).ranges()})
	}
	return mappings
}
