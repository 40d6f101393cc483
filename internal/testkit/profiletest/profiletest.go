// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package profiletest checks profiles for tests.
package profiletest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/callbraid/callbraid/internal/componentkit/schema"
)

// CheckValid fails if profiles break a rule.
func CheckValid(t testing.TB, profiles pprofile.Profiles) {
	t.Helper()
	require.Empty(t, brokenRules(profiles))
}

// rules are the rules of profiles (opentelemetry-proto, profiles) for the parts that components
// here use.
type rules struct {
	d      pprofile.ProfilesDictionary
	broken []string
}

// brokenRules returns the rules that profiles break.
func brokenRules(profiles pprofile.Profiles) []string {
	r := &rules{d: profiles.Dictionary()}
	r.firstEntries()
	if r.broken == nil {
		r.entries()
		for _, of := range profiles.ResourceProfiles().All() {
			r.want(of.SchemaUrl() == schema.URL && of.ScopeProfiles().At(0).SchemaUrl() == schema.URL, "schema URL")
			for _, p := range of.ScopeProfiles().At(0).Profiles().All() {
				r.profile(p)
			}
		}
	}
	return r.broken
}

func (r *rules) want(ok bool, rule string, which ...any) {
	if !ok {
		r.broken = append(r.broken, rule+fmt.Sprint(which...))
	}
}

// index wants an index to be in a table that has so many entries. 0 is none.
func (r *rules) index(i int32, entries int, needed bool, table string) {
	r.want(i >= 0 && int(i) < entries, "outside of the table: "+table, " ", i)
	r.want(i != 0 || !needed, "none: "+table)
}

func (r *rules) text(i int32, needed bool) { r.index(i, r.d.StringTable().Len(), needed, "text") }

func (r *rules) attributes(all []int32) {
	for _, i := range all {
		r.index(i, r.d.AttributeTable().Len(), true, "attribute")
	}
}

// once wants entries of a table to differ.
func (r *rules) once(table string) func(entry ...any) {
	seen := map[string]bool{}
	return func(entry ...any) {
		key := fmt.Sprintf("%q", entry)
		r.want(!seen[key], "twice: "+table+" ", key)
		seen[key] = true
	}
}

// firstEntries are there in each table, and empty.
func (r *rules) firstEntries() {
	d := r.d
	r.want(d.StringTable().Len() > 0 && d.StringTable().At(0) == "", "first text")
	r.want(d.FunctionTable().Len() > 0 && assert.ObjectsAreEqual(pprofile.NewFunction(), d.FunctionTable().At(0)), "first function")
	r.want(d.LocationTable().Len() > 0 && assert.ObjectsAreEqual(pprofile.NewLocation(), d.LocationTable().At(0)), "first location")
	r.want(d.StackTable().Len() > 0 && d.StackTable().At(0).LocationIndices().Len() == 0, "first stack")
	r.want(d.AttributeTable().Len() > 0 && assert.ObjectsAreEqual(pprofile.NewKeyValueAndUnit(), d.AttributeTable().At(0)), "first attribute")
	r.want(d.MappingTable().Len() == 1 && assert.ObjectsAreEqual(pprofile.NewMapping(), d.MappingTable().At(0)), "the mapping")
	r.want(d.LinkTable().Len() == 1 && assert.ObjectsAreEqual(pprofile.NewLink(), d.LinkTable().At(0)), "the link")
}

// entries checks that entries refer to existing ones, and that each stands once.
func (r *rules) entries() {
	d := r.d
	text, function, location, stack, attribute := r.once("text"), r.once("function"), r.once("location"), r.once("stack"), r.once("attribute")
	for _, s := range d.StringTable().All() {
		r.want(utf8.ValidString(s), "UTF-8: ", s)
		text(s)
	}
	for i, f := range d.FunctionTable().All() {
		r.text(f.NameStrindex(), i > 0)
		r.text(f.SystemNameStrindex(), false)
		r.text(f.FilenameStrindex(), false)
		function(f.NameStrindex(), f.SystemNameStrindex(), f.FilenameStrindex(), f.StartLine())
	}
	for i, l := range d.LocationTable().All() {
		r.index(l.MappingIndex(), d.MappingTable().Len(), false, "mapping")
		r.attributes(l.AttributeIndices().AsRaw())
		r.want(l.Lines().Len() == min(i, 1), "lines of location ", i)
		for _, line := range l.Lines().All() {
			r.index(line.FunctionIndex(), d.FunctionTable().Len(), true, "function")
			location(line.FunctionIndex(), line.Line(), l.AttributeIndices().AsRaw())
		}
	}
	for _, s := range d.StackTable().All() {
		for _, l := range s.LocationIndices().All() {
			r.index(l, d.LocationTable().Len(), true, "location")
		}
		stack(s.LocationIndices().AsRaw())
	}
	for i, a := range d.AttributeTable().All() {
		r.text(a.KeyStrindex(), i > 0)
		r.text(a.UnitStrindex(), false)
		attribute(a.KeyStrindex(), a.Value().Type(), a.Value().AsString())
	}
}

func (r *rules) profile(p pprofile.Profile) {
	r.text(p.SampleType().TypeStrindex(), true)
	r.text(p.SampleType().UnitStrindex(), true)
	r.text(p.PeriodType().TypeStrindex(), false)
	r.text(p.PeriodType().UnitStrindex(), p.PeriodType().TypeStrindex() != 0)
	r.want(!p.ProfileID().IsEmpty(), "no profile ID")
	r.want(p.Samples().Len() > 0, "no samples")
	sample := r.once("sample")
	for _, s := range p.Samples().All() {
		r.index(s.StackIndex(), r.d.StackTable().Len(), true, "stack")
		r.index(s.LinkIndex(), r.d.LinkTable().Len(), false, "link")
		r.attributes(s.AttributeIndices().AsRaw())
		r.want(s.Values().Len() == 1 && s.TimestampsUnixNano().Len() == 0, "values and times of a sample")
		for _, v := range s.Values().All() {
			r.want(v >= 0, "value ", v)
		}
		sample(s.StackIndex(), s.AttributeIndices().AsRaw())
	}
}

// Fold returns profiles as text: a head for each, and a sorted line for each sample with its
// stack, the leaf last, its attributes and its value.
func Fold(all []pprofile.Profiles) string {
	var text strings.Builder
	for _, profiles := range all {
		d := profiles.Dictionary()
		str := func(i int32) string { return d.StringTable().At(int(i)) }
		for _, p := range profiles.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
			total := int64(0)
			lines := make([]string, 0, p.Samples().Len())
			for _, s := range p.Samples().All() {
				lines = append(lines, foldStack(d, s))
				total += s.Values().At(0)
			}
			slices.Sort(lines)
			fmt.Fprintf(&text, "== %s in %s, period of %q; from %d for %d ns; %d samples, total %d\n%s\n",
				str(p.SampleType().TypeStrindex()), str(p.SampleType().UnitStrindex()), str(p.PeriodType().TypeStrindex()),
				p.Time(), p.DurationNano(), len(lines), total, strings.Join(lines, "\n"))
		}
	}
	return text.String()
}

func foldStack(d pprofile.ProfilesDictionary, s pprofile.Sample) string {
	str := func(i int32) string { return d.StringTable().At(int(i)) }
	var frames []string
	for _, l := range d.StackTable().At(int(s.StackIndex())).LocationIndices().All() {
		location := d.LocationTable().At(int(l))
		line := location.Lines().At(0)
		f := d.FunctionTable().At(int(line.FunctionIndex()))
		frame := fmt.Sprintf("%s@%s:%d", str(f.NameStrindex()), str(f.FilenameStrindex()), f.StartLine())
		if line.Line() > 0 {
			frame += fmt.Sprintf(" line %d", line.Line())
		}
		frames = append(frames, frame)
	}
	slices.Reverse(frames)
	var attributes []string
	for _, i := range s.AttributeIndices().All() {
		a := d.AttributeTable().At(int(i))
		attributes = append(attributes, str(a.KeyStrindex())+"="+a.Value().AsString())
	}
	return fmt.Sprintf("%s {%s} %d", strings.Join(frames, "; "), strings.Join(attributes, ", "), s.Values().At(0))
}
