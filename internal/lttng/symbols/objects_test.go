// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit"
)

// lookedUp returns the object and offset of an address as "path+0xoffset".
func lookedUp(o *Objects, addr uint64) string {
	object, offset, ok := o.Lookup(addr)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s+0x%x", object, offset)
}

func TestLookup(t *testing.T) {
	o := NewObjects(nil, DefaultMaxObjects)
	assert.Empty(t, lookedUp(o, 0))
	require.NoError(t, o.Map(Mapping{Base: 0x3000, Size: 0x1000, Path: "/c"}))
	require.NoError(t, o.Map(Mapping{Base: 0x1000, Size: 0x1000, Path: "/a"}))
	require.NoError(t, o.Map(Mapping{Base: 0x2000, Size: 0x800, Path: "/b"}))
	require.NoError(t, o.Map(Mapping{Base: 0x5000, Size: 0, Path: "[vdso]"}))
	for addr, want := range map[uint64]string{
		0xfff: "", 0x1000: "/a+0x0", 0x1fff: "/a+0xfff", 0x2000: "/b+0x0", 0x27ff: "/b+0x7ff", 0x2800: "", 0x2fff: "",
		0x3001: "/c+0x1", 0x4000: "", 0x5000: "", 1<<64 - 1: "",
	} {
		assert.Equal(t, want, lookedUp(o, addr), "0x%x", addr)
	}
	assert.True(t, o.Unmap(0x2000))
	assert.False(t, o.Unmap(0x2000))
	assert.False(t, o.Unmap(0x1001), "only a base is one")
	assert.Empty(t, lookedUp(o, 0x2000))
	assert.Equal(t, 3, o.Len())
}

func TestANewObjectRemovesThoseThatItOverlaps(t *testing.T) {
	for name, c := range map[string]struct {
		base, size uint64
		remaining  []string // of /a at 0x1000, /b at 0x2000, /c at 0x3000, each of 0x1000 bytes
	}{
		"none":                       {0x8000, 0x1000, []string{"/a", "/b", "/c", "/new"}},
		"the same place":             {0x2000, 0x1000, []string{"/a", "/new", "/c"}},
		"inside one":                 {0x2800, 0x100, []string{"/a", "/new", "/c"}},
		"the end of one":             {0x2fff, 1, []string{"/a", "/new", "/c"}},
		"the end of one and another": {0x2fff, 2, []string{"/a", "/new"}},
		"all":                        {0, 0x10000, []string{"/new"}},
		"the first from below":       {0x800, 0x801, []string{"/new", "/b", "/c"}},
		"up to the first":            {0x800, 0x800, []string{"/new", "/a", "/b", "/c"}},
		"empty, at a base":           {0x2000, 0, []string{"/a", "/new", "/c"}},
		"empty, outside":             {0x4000, 0, []string{"/a", "/b", "/c", "/new"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewObjects(nil, DefaultMaxObjects)
			for i, path := range []string{"/a", "/b", "/c"} {
				require.NoError(t, o.Map(Mapping{Base: uint64(i+1) * 0x1000, Size: 0x1000, Path: path}))
			}
			require.NoError(t, o.Map(Mapping{Base: c.base, Size: c.size, Path: "/new"}))
			var remaining []string
			for _, b := range o.loaded {
				remaining = append(remaining, b.identity.path)
			}
			assert.ElementsMatch(t, c.remaining, remaining)
		})
	}
}

// With any sequence of Map and Unmap, an address belongs to the object that was mapped there last, unless that one
// was unmapped or removed by an overlap.
func TestLookupEqualsThatOfAList(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	rounds := 200
	if testing.Short() {
		rounds = 10
	}
	for range rounds {
		o := NewObjects(nil, DefaultMaxObjects)
		var list []Mapping
		for range 60 {
			if len(list) > 0 && random.IntN(4) == 0 {
				i := random.IntN(len(list))
				require.True(t, o.Unmap(list[i].Base))
				list = append(list[:i], list[i+1:]...)
			} else {
				m := Mapping{Base: random.Uint64N(100), Size: 1 + random.Uint64N(20), Path: fmt.Sprint("/", random.IntN(1000))}
				require.NoError(t, o.Map(m))
				var kept []Mapping
				for _, old := range list {
					if old.Base+old.Size <= m.Base || m.Base+m.Size <= old.Base {
						kept = append(kept, old)
					}
				}
				list = append(kept, m)
			}
			require.Equal(t, len(list), o.Len())
			for addr := range uint64(130) {
				want := ""
				for _, m := range list {
					if m.Base <= addr && addr < m.Base+m.Size {
						want = fmt.Sprintf("%s+0x%x", m.Path, addr-m.Base)
					}
				}
				require.Equal(t, want, lookedUp(o, addr))
			}
		}
	}
}

func TestObjectsThatCannotBeMapped(t *testing.T) {
	o := NewObjects(nil, 2)
	require.ErrorContains(t, o.Map(Mapping{Base: 1<<64 - 1, Size: 1, Path: "/a"}), "expected it to end below 2^64")
	require.ErrorContains(t, o.Map(Mapping{Base: 1, Size: 1, Path: "/a", BuildID: make([]byte, 65)}), "expected a build ID of at most 64 bytes, got 65")
	require.NoError(t, o.Map(Mapping{Base: 1, Size: 1, Path: "/a"}))
	require.NoError(t, o.Map(Mapping{Base: 2, Size: 1, Path: "/b"}))
	require.ErrorIs(t, o.Map(Mapping{Base: 3, Size: 1, Path: "/c"}), ErrTooManyObjects)
	require.NoError(t, o.Map(Mapping{Base: 2, Size: 5, Path: "/c"}), "it takes the place of another")
	assert.Equal(t, "/a+0x0", lookedUp(o, 1))
	assert.Equal(t, "/c+0x1", lookedUp(o, 3))
}

func TestPathsInNames(t *testing.T) {
	for told, want := range map[string]string{
		"/opt//shop/./bin/../shop": "/opt/shop/shop",
		"[linux-vdso.so.1]":        "[linux-vdso.so.1]",
		"":                         "[unnamed]",
		"/a\xffb":                  "/a?b",
		strings.Repeat("x", 5000):  strings.Repeat("x", 4096),
	} {
		assert.Equal(t, want, cleanPath(told))
	}
}

func TestABuildIDThatFollows(t *testing.T) {
	bed := newFilesBed(t)
	shopImage("pay").write(t, bed.dir, "shop")
	o := NewObjects(bed.Files, DefaultMaxObjects)
	told := Mapping{Base: 0x1000, Size: 0x1000, Path: "/shop", BuildIDFollows: true}
	require.NoError(t, o.Map(told))
	assert.Equal(t, "shop+0x100", o.Name(0x1100).Qualified)
	require.NoError(t, o.SetBuildID(0x1000, []byte(shopBuildID)))
	f := o.Name(0x1100)
	assert.Equal(t, &Function{Qualified: "pay", Display: "pay", Text: "pay", Object: "/shop", Offset: 0x100, Size: 0x10, Named: true, NoLine: NoDebugInfo}, f)

	require.NoError(t, o.Map(told), "told again, it is the same")
	assert.Equal(t, f, o.Name(0x1100))
	require.NoError(t, o.SetBuildID(0x1000, []byte(shopBuildID)))
	assert.Equal(t, f, o.Name(0x1100))

	require.NoError(t, o.SetBuildID(0x1000, []byte("another")), "the address was used again, and its unloading lost")
	assert.Equal(t, "shop+0x100", o.Name(0x1100).Qualified)

	require.EqualError(t, o.SetBuildID(0x2000, []byte("id")), "build ID 6964: expected an object at 0x2000, got none")
	require.EqualError(t, o.SetBuildID(0x1000, nil), `object "/shop": expected a build ID of 1 to 64 bytes, got 0`)
}

func TestADebugLinkThatFollows(t *testing.T) {
	bed := newFilesBed(t)
	shopImage("pay").write(t, bed.dir, "opt/.debug/pay.debug")
	o := NewObjects(bed.Files, DefaultMaxObjects)
	require.NoError(t, o.Map(Mapping{Base: 0x1000, Size: 0x1000, Path: "/opt/shop", BuildID: []byte(shopBuildID)}))
	require.NoError(t, o.SetDebugLink(0x1000, "pay.debug", 0))
	assert.Equal(t, "pay", o.Name(0x1100).Qualified)
	require.NoError(t, o.SetDebugLink(0x1000, "later", 0))
	require.EqualError(t, o.SetDebugLink(0x2000, "x", 0), `debug link "x": expected an object at 0x2000, got none`)
}

func TestAnObjectThatIsReportedAgain(t *testing.T) {
	told := Mapping{Base: 0x1000, Size: 0x1000, Path: "/shop", BuildID: []byte("id")}
	for name, c := range map[string]struct {
		change func(*Mapping)
		same   bool
	}{
		"the same":                     {func(*Mapping) {}, true},
		"its build ID follows":         {func(m *Mapping) { m.BuildID, m.BuildIDFollows = nil, true }, true},
		"the path in another form":     {func(m *Mapping) { m.Path = "//./shop" }, true},
		"another path":                 {func(m *Mapping) { m.Path = "/other" }, false},
		"another size":                 {func(m *Mapping) { m.Size = 0x2000 }, false},
		"another base":                 {func(m *Mapping) { m.Base = 0x1001 }, false},
		"another build ID":             {func(m *Mapping) { m.BuildID = []byte("no") }, false},
		"no build ID where it had one": {func(m *Mapping) { m.BuildID = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewObjects(nil, 1)
			require.NoError(t, o.Map(told))
			before := o.loaded[0]
			again := told
			c.change(&again)
			require.NoError(t, o.Map(again))
			require.Equal(t, 1, o.Len())
			assert.Equal(t, c.same, before == o.loaded[0])
		})
	}
}

func TestNamesAreThoseOfTheMappedObjects(t *testing.T) {
	bed := newFilesBed(t)
	shopImage("pay").write(t, bed.dir, "shop")
	o := NewObjects(bed.Files, DefaultMaxObjects)
	shop := Mapping{Base: 0x1000, Size: 0x1000, Path: "/shop", BuildID: []byte(shopBuildID)}
	assert.Equal(t, "0x1100", o.Name(0x1100).Qualified)
	require.NoError(t, o.Map(shop))
	assert.Equal(t, "pay", o.Name(0x1100).Qualified)
	assert.Equal(t, "shop+0x110", o.Name(0x1110).Qualified)
	require.NoError(t, o.Map(Mapping{Base: 0x1000, Size: 0x800, Path: "/other"}))
	assert.Equal(t, "other+0x100", o.Name(0x1100).Qualified)
	assert.True(t, o.Unmap(0x1000))
	assert.Equal(t, "0x1100", o.Name(0x1100).Qualified)
	require.NoError(t, o.Map(shop))
	assert.Equal(t, "pay", o.Name(0x1100).Qualified)
}

// An object without names does not get names later, because a function would have another name at its exit than at
// its entry.
func TestNamesDoNotChangeWhileAnObjectIsLoaded(t *testing.T) {
	bed := newFilesBed(t, func(s *Settings) { s.RetryAfter = 0 })
	o := NewObjects(bed.Files, DefaultMaxObjects)
	shop := Mapping{Base: 0x1000, Size: 0x1000, Path: "/shop", BuildID: []byte(shopBuildID)}
	require.NoError(t, o.Map(shop))
	assert.Equal(t, "shop+0x100", o.Name(0x1100).Qualified)
	shopImage("pay").write(t, bed.dir, "shop")
	assert.Equal(t, "shop+0x101", o.Name(0x1101).Qualified)
	o = NewObjects(bed.Files, DefaultMaxObjects)
	require.NoError(t, o.Map(shop))
	assert.Equal(t, "pay", o.Name(0x1101).Qualified, "another process")
}

func TestAnExecutableWithFixedAddressesHasThoseOfItsFile(t *testing.T) {
	bed := newFilesBed(t)
	m := shopImage("pay")
	m.typ = 2 // ET_EXEC
	m.write(t, bed.dir, "shop")
	for base, want := range map[uint64]string{0x1000: "pay", 0x5000: "shop+0x100"} {
		o := NewObjects(bed.Files, DefaultMaxObjects)
		require.NoError(t, o.Map(Mapping{Base: base, Size: 0x1000, Path: "/shop", BuildID: []byte(shopBuildID)}))
		assert.Equal(t, want, o.Name(base+0x100).Qualified)
	}
	assert.Equal(t, []string{"/shop: expected an object that can lie at 0x5000, got one for 0x1000"}, bed.reported)
}

// The memory for loaded objects is bounded, and lookups use no memory.
func TestLookupsUseNoMemory(t *testing.T) {
	o := NewObjects(nil, DefaultMaxObjects)
	before := testkit.HeapBytes()
	for i := range uint64(DefaultMaxObjects) {
		require.NoError(t, o.Map(Mapping{Base: i << 20, Size: 1 << 20, Path: "/" + strings.Repeat("x", 5*MaxPathBytes)}))
	}
	mapped := testkit.HeapBytes() - before
	assert.Less(t, mapped, int64(DefaultMaxObjects*(MaxPathBytes+500)))
	require.ErrorIs(t, o.Map(Mapping{Base: 1 << 40, Size: 1, Path: "/x"}), ErrTooManyObjects)
	for i := range uint64(5_000) {
		o.Name(i << 18)
		o.Name(1<<40 + i)
	}
	assert.Less(t, testkit.HeapBytes()-before, mapped+1<<20)
	runtime.KeepAlive(o)
}

func TestLookingUpAllocatesNothing(t *testing.T) {
	o := NewObjects(nil, DefaultMaxObjects)
	require.NoError(t, o.Map(Mapping{Base: 0x1000, Size: 0x1000, Path: "/shop"}))
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		for _, addr := range []uint64{0x1100, 0x1108, 0x1110, 0x9000} {
			o.Lookup(addr)
		}
	}))
}

func TestTheStartOfAFunctionIsKnownAfterTheFirstNameInItsObject(t *testing.T) {
	bed := newFilesBed(t)
	shopImage("pay").write(t, bed.dir, "shop")
	o := NewObjects(bed.Files, DefaultMaxObjects)
	require.NoError(t, o.Map(Mapping{Base: 0x1000, Size: 0x1000, Path: "/shop", BuildID: []byte(shopBuildID)}))
	assert.Zero(t, o.Start(0x1108), "no file was read")
	assert.Equal(t, uint64(0x8), o.Name(0x1108).Size)
	assert.Equal(t, uint64(0x1100), o.Start(0x1108))
	assert.Zero(t, o.Start(0x1110), "behind the function")
	assert.Zero(t, o.Start(0x5000), "in no object")
}
