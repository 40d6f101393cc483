// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// filesBed is a Files with one directory, and its reports.
type filesBed struct {
	*Files
	dir      string
	reported []string
}

// newFilesBed returns Files with the default settings, in a new directory, with changes.
func newFilesBed(t *testing.T, changes ...func(*Settings)) *filesBed {
	bed := &filesBed{dir: t.TempDir()}
	settings := DefaultSettings()
	settings.Paths = []string{bed.dir}
	settings.Report = func(object string, err error) {
		bed.reported = append(bed.reported, fmt.Sprintf("%s: %v", object, err))
	}
	for _, change := range changes {
		change(&settings)
	}
	var err error
	bed.Files, err = NewFiles(settings)
	require.NoError(t, err)
	return bed
}

const shopBuildID = "\x01\x02\x03\x04\x05\x06\x07\x08"

// shopImage returns an image with one function at 0x1100.
func shopImage(name string) image {
	return image{first: 0x1000, buildID: shopBuildID, symbols: []imageSymbol{{name: name, start: 0x1100, size: 0x10}}}
}

// strippedImage returns an image with only exported functions.
func strippedImage(name string) image {
	m := shopImage(name)
	m.symbols, m.exported = nil, m.symbols
	return m
}

// name returns the name of the shop's function for a Mapping, looked up by a new process.
func (bed *filesBed) name(t *testing.T, m Mapping) string {
	t.Helper()
	objects := NewObjects(bed.Files, DefaultMaxObjects)
	m.Base, m.Size = 0x555555554000, 0x1000
	require.NoError(t, objects.Map(m))
	f := objects.Name(m.Base + 0x100)
	assert.Equal(t, m.Path, f.Object)
	assert.Equal(t, uint64(0x100), f.Offset)
	return f.Qualified
}

func reportedShop() Mapping { return Mapping{Path: "/opt/shop/bin/shop", BuildID: []byte(shopBuildID)} }

func TestPlacesOfFiles(t *testing.T) {
	const unnamed = "shop+0x100"
	other := shopImage("wrong")
	other.buildID = "another"
	linked := reportedShop()
	linked.DebugLink = "shop.debug"
	escaping := reportedShop()
	escaping.DebugLink = "../../../shop.debug"
	for name, c := range map[string]struct {
		told  Mapping
		files map[string]image
		want  string
	}{
		"the reported path":                     {reportedShop(), map[string]image{"opt/shop/bin/shop": shopImage("told")}, "told"},
		"no file":                               {reportedShop(), nil, unnamed},
		"another file at the reported path":     {reportedShop(), map[string]image{"opt/shop/bin/shop": other}, unnamed},
		"by build ID":                           {reportedShop(), map[string]image{".build-id/01/02030405060708.debug": shopImage("by ID")}, "by ID"},
		"by build ID in the usual place":        {reportedShop(), map[string]image{"usr/lib/debug/.build-id/01/02030405060708.debug": shopImage("by ID")}, "by ID"},
		"by build ID, but a wrong one":          {reportedShop(), map[string]image{".build-id/01/02030405060708.debug": other}, unnamed},
		"beside a wrong file":                   {reportedShop(), map[string]image{"opt/shop/bin/shop": other, ".build-id/01/02030405060708.debug": shopImage("by ID")}, "by ID"},
		"by path in the usual place":            {reportedShop(), map[string]image{"usr/lib/debug/opt/shop/bin/shop.debug": shopImage("by path")}, "by path"},
		"by debug link, beside the object":      {linked, map[string]image{"opt/shop/bin/shop.debug": shopImage("by link")}, "by link"},
		"by debug link, in .debug":              {linked, map[string]image{"opt/shop/bin/.debug/shop.debug": shopImage("by link")}, "by link"},
		"by debug link, in the usual place":     {linked, map[string]image{"usr/lib/debug/opt/shop/bin/shop.debug": shopImage("by link")}, "by link"},
		"not by a debug link with folders":      {escaping, map[string]image{"shop.debug": shopImage("by link")}, unnamed},
		"exported functions":                    {reportedShop(), map[string]image{"opt/shop/bin/shop": strippedImage("exported")}, "exported"},
		"all functions before exported ones":    {reportedShop(), map[string]image{"opt/shop/bin/shop": strippedImage("exported"), ".build-id/01/02030405060708.debug": shopImage("by ID")}, "by ID"},
		"an object without absolute path":       {Mapping{Path: "shop", BuildID: []byte(shopBuildID)}, map[string]image{"shop": shopImage("told")}, unnamed},
		"a build ID too short for a debug file": {Mapping{Path: "/opt/shop", BuildID: []byte{1}}, map[string]image{".build-id/01/.debug": shopImage("by ID")}, unnamed},
	} {
		t.Run(name, func(t *testing.T) {
			bed := newFilesBed(t)
			for name, m := range c.files {
				m.write(t, bed.dir, name)
			}
			assert.Equal(t, c.want, bed.name(t, c.told))
		})
	}
}

func TestAReportHasTheReasonForMissingNames(t *testing.T) {
	bed := newFilesBed(t)
	bed.name(t, reportedShop())
	other := shopImage("wrong")
	other.buildID = "another"
	other.write(t, bed.dir, "opt/other")
	bed.name(t, Mapping{Path: "/opt/other", BuildID: []byte(shopBuildID)})
	bed.name(t, Mapping{Path: "/proc/1/exe"})
	bed.name(t, Mapping{Path: "[vdso]"}) // no names are expected in it
	assert.Equal(t, []string{
		"/opt/shop/bin/shop: no file found below " + bed.dir,
		"/opt/other: " + bed.dir + "/opt/other: expected build ID 0102030405060708, got 616e6f74686572",
		`/proc/1/exe: path is "/proc/1/exe", expected none in /proc`,
	}, bed.reported)
	assert.Equal(t, Stats{Missing: 3}, bed.Stats())
}

func TestWithoutPathsNothingIsRead(t *testing.T) {
	bed := newFilesBed(t, func(s *Settings) { s.Paths = nil })
	m := reportedShop()
	m.Path = shopImage("told").write(t, bed.dir, "shop")
	assert.Equal(t, "shop+0x100", bed.name(t, m))
	assert.Empty(t, bed.reported)
	assert.Zero(t, bed.Stats())
}

func TestSeveralDirectoriesAreTriedInOrder(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	bed := newFilesBed(t, func(s *Settings) { s.Paths = []string{filepath.Join(first, "absent"), first, second} })
	shopImage("second").write(t, second, "opt/shop/bin/shop")
	strippedImage("first").write(t, first, "opt/shop/bin/shop")
	assert.Equal(t, "second", bed.name(t, reportedShop()), "all functions go before the first directory")
}

func TestAFileIsReadOnceForAllProcesses(t *testing.T) {
	bed := newFilesBed(t)
	file := shopImage("told").write(t, bed.dir, "opt/shop/bin/shop")
	assert.Equal(t, "told", bed.name(t, reportedShop()))
	require.NoError(t, os.Remove(file))
	assert.Equal(t, "told", bed.name(t, reportedShop()))
	elsewhere := reportedShop()
	elsewhere.Path = "/opt/copy"
	assert.Equal(t, "told", bed.name(t, elsewhere), "the build ID identifies it, not the path")
	assert.Equal(t, uint64(1), bed.Stats().Read)
}

func TestTablesOfExportedFunctionsBelongToOnePath(t *testing.T) {
	bed := newFilesBed(t)
	strippedImage("exported").write(t, bed.dir, "opt/shop/bin/shop")
	assert.Equal(t, "exported", bed.name(t, reportedShop()))
	shopImage("full").write(t, bed.dir, "opt/full")
	full := reportedShop()
	full.Path = "/opt/full"
	assert.Equal(t, "full", bed.name(t, full))
	assert.Equal(t, "full", bed.name(t, reportedShop()), "the file found later has more functions")
}

func TestAnObjectWithoutBuildID(t *testing.T) {
	bed := newFilesBed(t)
	m := shopImage("told")
	m.buildID = ""
	file := m.write(t, bed.dir, "opt/shop")
	told := Mapping{Path: "/opt/shop"}
	assert.Equal(t, "told", bed.name(t, told))
	assert.Equal(t, "told", bed.name(t, told))
	assert.Equal(t, uint64(1), bed.Stats().Read, "a file that has not changed is not read again")

	m.symbols[0].name = "newer"
	m.write(t, bed.dir, "opt/shop")
	later := time.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(file, later, later))
	assert.Equal(t, "newer", bed.name(t, told))

	m.size = 0x2000
	m.write(t, bed.dir, "opt/shop")
	assert.Equal(t, "shop+0x100", bed.name(t, told), "the size in memory is another")
	require.Len(t, bed.reported, 1)
	assert.Contains(t, bed.reported[0], "expected segments of 0x1000 bytes, got 0x2000")
}

func TestAFileWithoutBuildIDThatWasWrittenAfterTheTraceIsNotUsed(t *testing.T) {
	bed := newFilesBed(t)
	m := shopImage("told")
	m.buildID = ""
	file := m.write(t, bed.dir, "opt/plain")
	built := time.Unix(1000, 0)
	require.NoError(t, os.Chtimes(file, built, built))
	assert.Equal(t, "told", bed.name(t, Mapping{Path: "/opt/plain", Seen: built.UnixNano()}))
	assert.Equal(t, "plain+0x100", bed.name(t, Mapping{Path: "/opt/plain", Seen: built.UnixNano() - 1}))
	require.Len(t, bed.reported, 1)
	assert.Contains(t, bed.reported[0], "expected a file without build ID from before 1970-01-01T00:16:39Z")

	withID := reportedShop()
	withID.Seen = 1
	shopImage("identified").write(t, bed.dir, withID.Path[1:])
	assert.Equal(t, "identified", bed.name(t, withID), "a build ID identifies the file")
}

func TestAMissingFileIsSearchedAgainLater(t *testing.T) {
	bed := newFilesBed(t)
	now := time.Unix(1000, 0)
	bed.now = func() time.Time { return now }
	assert.Equal(t, "shop+0x100", bed.name(t, reportedShop()))
	shopImage("told").write(t, bed.dir, "opt/shop/bin/shop")
	now = now.Add(time.Minute - 1)
	assert.Equal(t, "shop+0x100", bed.name(t, reportedShop()))
	assert.Len(t, bed.reported, 1)
	now = now.Add(1)
	assert.Equal(t, "told", bed.name(t, reportedShop()))
}

func TestTheNumberOfMissingFilesIsBounded(t *testing.T) {
	bed := newFilesBed(t)
	for i := range 2*maxSearched + 10 {
		bed.name(t, Mapping{Path: fmt.Sprintf("/opt/absent%d", i)})
		require.LessOrEqual(t, len(bed.searched), maxSearched)
	}
	assert.Equal(t, uint64(2*maxSearched+10), bed.Stats().Missing)
}

// manyShops writes objects of one function each and returns their Mappings.
func (bed *filesBed) manyShops(t *testing.T, n int) []Mapping {
	var told []Mapping
	for i := range n {
		m := shopImage(fmt.Sprintf("shop%d", i))
		m.buildID = fmt.Sprintf("id%d", i)
		m.write(t, bed.dir, m.symbols[0].name)
		told = append(told, Mapping{Path: "/" + m.symbols[0].name, BuildID: []byte(m.buildID)})
	}
	return told
}

func TestTheLeastRecentlyUsedTablesAreEvicted(t *testing.T) {
	one := tableBytes(1, len("shop0")+1)
	bed := newFilesBed(t, func(s *Settings) { s.MaxTableBytes = 2 * one })
	told := bed.manyShops(t, 3)
	for _, i := range []int{0, 1, 0, 2, 0} { // 2 evicts 1
		assert.Equal(t, fmt.Sprintf("shop%d", i), bed.name(t, told[i]))
	}
	assert.Equal(t, Stats{Read: 3, Evicted: 1, Tables: 2, Bytes: 2 * one}, bed.Stats())
	assert.Equal(t, "shop1", bed.name(t, told[1]), "it is read again")
	assert.Equal(t, Stats{Read: 4, Evicted: 2, Tables: 2, Bytes: 2 * one}, bed.Stats())
}

func TestAProcessHasTheSameNamesAfterATableIsEvicted(t *testing.T) {
	for name, c := range map[string]struct {
		buildID string
		change  func(t *testing.T, file string)
		want    string
	}{
		"the table is read again":                 {shopBuildID, func(*testing.T, string) {}, "second"},
		"its file is gone":                        {shopBuildID, func(t *testing.T, file string) { require.NoError(t, os.Remove(file)) }, "victim+0x110"},
		"its file without build ID is read again": {"", func(*testing.T, string) {}, "second"},
		"its file without build ID is another one": {"", func(t *testing.T, file string) {
			require.NoError(t, os.Chtimes(file, time.Unix(1, 0), time.Unix(1, 0)))
		}, "victim+0x110"},
	} {
		t.Run(name, func(t *testing.T) {
			bed := newFilesBed(t, func(s *Settings) { s.MaxTableBytes = 2 * tableBytes(1, len("shop0")+1) })
			m := shopImage("first")
			m.buildID = c.buildID
			m.symbols = append(m.symbols, imageSymbol{name: "second", start: 0x1110, size: 0x10})
			file := m.write(t, bed.dir, "victim")
			objects := NewObjects(bed.Files, DefaultMaxObjects)
			require.NoError(t, objects.Map(Mapping{Base: 0x1000, Size: 0x1000, Path: "/victim", BuildID: []byte(c.buildID)}))
			assert.Equal(t, "first", objects.Name(0x1100).Qualified)
			for _, m := range bed.manyShops(t, 3) {
				bed.name(t, m)
			}
			c.change(t, file)
			assert.Equal(t, c.want, objects.Name(0x1110).Qualified)
		})
	}
}

func TestProcessesShareFilesAtTheSameTime(t *testing.T) {
	one := tableBytes(1, len("shop0")+1)
	bed := newFilesBed(t, func(s *Settings) { s.MaxTableBytes, s.Report = 2*one, nil })
	told := append(bed.manyShops(t, 5), Mapping{Path: "/absent"})
	want := []string{"shop0", "shop1", "shop2", "shop3", "shop4", "absent+0x100"}
	var processes sync.WaitGroup
	for i := range 8 {
		processes.Go(func() {
			for j := range 30 {
				k := (i + j) % len(told)
				assert.Equal(t, want[k], bed.name(t, told[k]))
			}
		})
	}
	processes.Wait()
	assert.Equal(t, 2, bed.Stats().Tables)
	assert.Equal(t, uint64(1), bed.Stats().Missing)
}

func TestLargeFilesAreNotOpened(t *testing.T) {
	bed := newFilesBed(t, func(s *Settings) { s.MaxFileBytes = 100 })
	shopImage("told").write(t, bed.dir, "opt/shop/bin/shop")
	assert.Equal(t, "shop+0x100", bed.name(t, reportedShop()))
	require.Len(t, bed.reported, 1)
	assert.Contains(t, bed.reported[0], "expected a file of at most 100 bytes, got ")
}

func TestSettingsAreChecked(t *testing.T) {
	require.NoError(t, DefaultSettings().Validate())
	for want, change := range map[string]func(*Settings){
		`symbol path is "lib", expected an absolute path`:                              func(s *Settings) { s.Paths = []string{"/", "lib"} },
		"largest object file is 0 bytes, expected at least 1":                          func(s *Settings) { s.MaxFileBytes = 0 },
		"largest symbol table has 0 symbols, expected at least 1":                      func(s *Settings) { s.MaxSymbols = 0 },
		"memory for tables of functions is 0 bytes, expected 1 to 4294967295":          func(s *Settings) { s.MaxTableBytes = 0 },
		"memory for tables of functions is 4294967296 bytes, expected 1 to 4294967295": func(s *Settings) { s.MaxTableBytes = 1 << 32 },
		"time until a missing file is searched again is -1ns, expected at least 0":     func(s *Settings) { s.RetryAfter = -1 },
	} {
		settings := DefaultSettings()
		change(&settings)
		_, err := NewFiles(settings)
		assert.EqualError(t, err, want)
	}
}

// The trace chooses the name of a file with debug information, and the file can be large.
func TestOnlyAFileThatCanBeTheObjectsIsReadForItsChecksum(t *testing.T) {
	other := shopImage("other") // with a build ID
	right := shopImage("right")
	right.buildID = ""
	for name, c := range map[string]struct {
		content []byte
		want    int // checksums
	}{
		"text":               {[]byte("#!/bin/sh\n"), 0},
		"with a build ID":    {other.bytes(), 0},
		"of the same layout": {right.bytes(), 1},
	} {
		t.Run(name, func(t *testing.T) {
			bed := newFilesBed(t)
			writeFile(t, bed.dir, "opt/shop.debug", c.content)
			for crc := range uint32(3) {
				bed.name(t, Mapping{Path: "/opt/shop", DebugLink: "shop.debug", DebugCRC: 1 + crc})
			}
			assert.Len(t, bed.checksums, c.want)
		})
	}
}
