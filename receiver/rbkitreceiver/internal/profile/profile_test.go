// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/rbkittest"
	"github.com/callbraid/callbraid/internal/rbkit/sim/capture"
	"github.com/callbraid/callbraid/internal/testkit/heapsize"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/profile/profiletest"
)

// What checkValid looks for it finds.
// recordedTime is the time at which messages arrive.
var recorded = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

func TestTheCheckFindsBrokenRulesOfProfiles(t *testing.T) {
	all := samplesCapture(t).Messages
	snapshot := all[slices.IndexFunc(all, func(m capture.Message) bool { return m.Name == "documented-watch-with-allocation_snapshot" })].Data
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
		r := newReading(t, 10_000)
		require.NoError(t, r.read(snapshot))
		p := r.finish()[0]
		do(p, p.Dictionary())
		found := profiletest.BrokenRules(p)
		if assert.NotEmpty(t, found, broken) {
			assert.Contains(t, found[0], broken)
		}
	}
}

func TestCachedStacksAreBounded(t *testing.T) {
	r := newReading(t, 10_000)
	s := &r.samples
	most := 0
	// Few frames, so that the tables stay small, in long stacks.
	const stacks, depth, times = 120, 4000, 3
	for i := range stacks {
		frames, random := make([]rbkit.Frame, depth), rand.New(rand.NewPCG(uint64(i), 0))
		for j := range frames {
			frames[j] = rbkit.Frame{Method: fmt.Appendf(nil, "method%d", random.IntN(7)), File: []byte("a/long/path/of/a.rb")}
		}
		e := rbkittest.LastEvent(t, rbkit.Documented, func(c *rbkit.Collection) error { return c.Sample(1, frames) })
		for range times {
			s.Count(1, e.Frames, recorded)
		}
		most = max(most, s.cachedBytes)
	}
	all := r.finish()
	assert.LessOrEqual(t, most, maxCachedBytes)
	assert.Greater(t, most, maxCachedBytes/2)
	total := int64(0)
	for _, p := range all {
		for _, sample := range p.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().All() {
			total += sample.Values().At(0)
		}
	}
	assert.EqualValues(t, stacks*times, total)
}

func TestAnUnknownClockOfSamplesIsLeftOut(t *testing.T) {
	off := func(clock string) *rbkit.HandshakeReply { return &rbkit.HandshakeReply{Clock: clock} }
	on := func(clock string) *rbkit.HandshakeReply {
		return &rbkit.HandshakeReply{Clock: clock, CPUProfiling: true}
	}
	for name, c := range map[string]struct {
		said []*rbkit.HandshakeReply
		want string
	}{
		"nothing":                           {nil, ""},
		"found on":                          {[]*rbkit.HandshakeReply{on("cpu")}, "cpu"},
		"found off":                         {[]*rbkit.HandshakeReply{off("cpu")}, "cpu"},
		"the same again":                    {[]*rbkit.HandshakeReply{on("cpu"), on("cpu")}, "cpu"},
		"set while it is off":               {[]*rbkit.HandshakeReply{off("wall"), off("cpu")}, "cpu"},
		"set and switched on":               {[]*rbkit.HandshakeReply{off("wall"), on("cpu")}, "cpu"},
		"set while it is on":                {[]*rbkit.HandshakeReply{on("wall"), on("cpu")}, ""},
		"set while it is on, sent again":    {[]*rbkit.HandshakeReply{on("wall"), on("cpu"), on("cpu")}, ""},
		"set while it is on, started again": {[]*rbkit.HandshakeReply{on("wall"), on("cpu"), off("cpu"), on("cpu")}, "cpu"},
	} {
		var s Samples
		for _, h := range c.said {
			s.SetState(h)
		}
		assert.Equal(t, c.want, s.clock, name)
	}
}

func TestALineOfAnUnknownMethodHasItsPlaceAsName(t *testing.T) {
	for file, want := range map[string]string{
		"/app/lib/shop/cart.rb":        "shop/cart.rb:40",
		"shop/cart.rb":                 "shop/cart.rb:40",
		"/cart.rb":                     "/cart.rb:40",
		"cart.rb":                      "cart.rb:40",
		"<internal:gc>":                "<internal:gc>:40",
		"":                             noMethod,
		strings.Repeat("x", 100):       strings.Repeat("x", 100) + ":40",
		"/" + strings.Repeat("x", 100): noMethod,
	} {
		d := newDictionary(pprofile.NewProfilesDictionary())
		s := snapshot{dictionary: d, at: snapshotSite{file: d.string(file), line: 40}}
		f := d.tables.FunctionTable().At(int(s.siteFunction()))
		assert.Equal(t, want, d.tables.StringTable().At(int(f.NameStrindex())))
		assert.Equal(t, file, d.tables.StringTable().At(int(f.FilenameStrindex())))
	}
}

func TestCountedMemoryIsTheMemoryOfAProfile(t *testing.T) {
	r := newReading(t, 1_000_000)
	heapsize.AssertCounted(t, r.samples.Memory, func() {
		r.samples.begin(1, recorded)
		for i := range 12_000 {
			method := strconv.AppendInt([]byte("a method with a name "), int64(i), 10)
			at := r.samples.dictionary.frame(&rbkit.Frame{Method: method, File: []byte("/srv/file.rb"), Line: 1})
			r.samples.dictionary.stack([]int32{at.location})
		}
	}, 0.35)
	runtime.KeepAlive(r)
}
