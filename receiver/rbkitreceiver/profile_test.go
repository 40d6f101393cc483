// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"fmt"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/callbraid/callbraid/internal/componentkit/schema"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
)

// checkValid fails where a rule for profiles is broken.
func checkValid(t *testing.T, profiles pprofile.Profiles) {
	t.Helper()
	require.Empty(t, brokenRules(profiles))
}

// rules are those for profiles (opentelemetry-proto, profiles), as far as they concern what
// the receiver makes.
type rules struct {
	d      pprofile.ProfilesDictionary
	broken []string
}

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

// entries refer to what there is, and are there once.
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

func TestProfilesAreValid(t *testing.T) {
	for _, name := range []string{"released-30s", "documented-30s", "samples"} {
		got := mapCapture(t, openCapture(t, name))
		profiles, ids := 0, map[pprofile.ProfileID]bool{}
		for _, p := range got.profiles {
			checkValid(t, p)
			for _, one := range p.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
				profiles++
				ids[one.ProfileID()] = true
			}
		}
		assert.Greater(t, profiles, 1, name)
		assert.Len(t, ids, profiles, "each has an ID of its own")
	}
}

// What checkValid looks for it finds.
func TestTheCheckFindsBrokenRulesOfProfiles(t *testing.T) {
	snapshot := only(openCapture(t, "samples"), "documented-watch-with-allocation_snapshot").Messages[0].Data
	first := func(p pprofile.Profiles) pprofile.Profile {
		return p.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
	}
	for broken, do := range map[string]func(pprofile.Profiles, pprofile.ProfilesDictionary){
		"first text":     func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) { d.StringTable().SetAt(0, "a") },
		"first function": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) { d.FunctionTable().At(0).SetStartLine(1) },
		"first location": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) { d.LocationTable().At(0).SetAddress(1) },
		"first stack": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.StackTable().At(0).LocationIndices().Append(1)
		},
		"first attribute": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) { d.AttributeTable().At(0).SetKeyStrindex(1) },
		"the mapping":     func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) { d.MappingTable().AppendEmpty() },
		"the link":        func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) { d.LinkTable().AppendEmpty() },
		"UTF-8":           func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) { d.StringTable().Append("\xff") },
		"twice: text": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.StringTable().Append(d.StringTable().At(1))
		},
		"twice: function": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.FunctionTable().At(1).CopyTo(d.FunctionTable().AppendEmpty())
		},
		"twice: location": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.LocationTable().At(1).CopyTo(d.LocationTable().AppendEmpty())
		},
		"twice: stack": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.StackTable().At(1).CopyTo(d.StackTable().AppendEmpty())
		},
		"twice: attribute": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.AttributeTable().At(1).CopyTo(d.AttributeTable().AppendEmpty())
		},
		"twice: sample": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			first(p).Samples().At(0).CopyTo(first(p).Samples().AppendEmpty())
		},
		"none: text": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) { d.FunctionTable().At(1).SetNameStrindex(0) },
		"outside of the table: text": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.FunctionTable().At(1).SetFilenameStrindex(1 << 20)
		},
		"outside of the table: function": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.LocationTable().At(1).Lines().At(0).SetFunctionIndex(-1)
		},
		"outside of the table: location": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.StackTable().At(1).LocationIndices().Append(1 << 20)
		},
		"outside of the table: attribute": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			first(p).Samples().At(0).AttributeIndices().Append(1 << 20)
		},
		"outside of the table: stack": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			first(p).Samples().At(0).SetStackIndex(1 << 20)
		},
		"outside of the table: mapping": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) { d.LocationTable().At(1).SetMappingIndex(1) },
		"outside of the table: link":    func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) { first(p).Samples().At(0).SetLinkIndex(1) },
		"none: stack":                   func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) { first(p).Samples().At(0).SetStackIndex(0) },
		"lines of location 1": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.LocationTable().At(1).Lines().AppendEmpty()
		},
		"no profile ID": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) { first(p).SetProfileID(pprofile.ProfileID{}) },
		"no samples": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			first(p).Samples().RemoveIf(func(pprofile.Sample) bool { return true })
		},
		"values and times": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) { first(p).Samples().At(0).Values().Append(1) },
		"value -1": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			first(p).Samples().At(0).Values().SetAt(0, -1)
		},
	} {
		b, s := alone(t)
		s.beginLife(origin.Identity{})
		s.receive(zmtp.Message{snapshot})
		b.finish(s)
		p := b.Profiles.AllProfiles()[0]
		require.Empty(t, brokenRules(p))
		do(p, p.Dictionary())
		found := brokenRules(p)
		if assert.NotEmpty(t, found, broken) {
			assert.Contains(t, found[0], broken)
		}
	}
}
