// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/rbkittest"
	"github.com/callbraid/callbraid/internal/testkit/heapsize"
)

// What checkValid looks for it finds.
// recordedTime is the time at which messages arrive.
var recorded = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

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
		r.samples.beginProfile(1, recorded)
		for i := range 12_000 {
			method := strconv.AppendInt([]byte("a method with a name "), int64(i), 10)
			at := r.samples.dictionary.frame(&rbkit.Frame{Method: method, File: []byte("/srv/file.rb"), Line: 1})
			r.samples.dictionary.stack([]int32{at.location})
		}
	}, 0.35)
	runtime.KeepAlive(r)
}
