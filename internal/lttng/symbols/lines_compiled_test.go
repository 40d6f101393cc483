// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package symbols

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"hash/crc32"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// linesBed looks up functions of one compiled file.
type linesBed struct {
	objects *Objects
	base    uint64
	// noLines are the reasons why objects have no lines.
	noLines []string
}

// newLinesBed maps a file below dir, under its path there.
func newLinesBed(t *testing.T, dir, file string, changes ...func(*Settings)) *linesBed {
	t.Helper()
	bed := &linesBed{}
	settings := DefaultSettings()
	settings.Paths = []string{dir}
	settings.ReportLines = func(object string, err error) { bed.noLines = append(bed.noLines, fmt.Sprintf("%s: %v", object, err)) }
	for _, change := range changes {
		change(&settings)
	}
	files, err := NewFiles(settings)
	require.NoError(t, err)
	bed.objects = NewObjects(files, DefaultMaxObjects)
	m := mappingOf(t, filepath.Join(dir, file), 0)
	f, err := elf.Open(filepath.Join(dir, file))
	require.NoError(t, err)
	defer f.Close()
	l, err := layoutOf(f)
	require.NoError(t, err)
	m.Base, m.Path = l.first, "/"+file
	if !l.fixed {
		bed.base = 0x555555554000
		m.Base += bed.base
	}
	require.NoError(t, bed.objects.Map(m))
	return bed
}

// place returns the place of the function at an address of the file, as file:line or the reason why it is not known.
func (bed *linesBed) place(addr uint64) string {
	f := bed.objects.Name(bed.base + addr)
	if f.Line == 0 {
		return f.NoLine
	}
	return fmt.Sprintf("%s:%d", f.File, f.Line)
}

// functionsOf returns the addresses of functions in a file's symbol table, by name.
func functionsOf(t *testing.T, file string) map[string]uint64 {
	t.Helper()
	f, err := elf.Open(file)
	require.NoError(t, err)
	defer f.Close()
	symbols, err := f.Symbols()
	require.NoError(t, err)
	functions := map[string]uint64{}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Section != elf.SHN_UNDEF && s.Size > 0 {
			functions[s.Name] = s.Value
		}
	}
	return functions
}

// expectedPlaces returns the first row of each address according to debug/dwarf.
func expectedPlaces(t *testing.T, file string) map[uint64]string {
	t.Helper()
	f, err := elf.Open(file)
	require.NoError(t, err)
	defer f.Close()
	data, err := f.DWARF()
	require.NoError(t, err)
	places := map[uint64]string{}
	for r := data.Reader(); ; {
		unit, err := r.Next()
		require.NoError(t, err)
		if unit == nil {
			return places
		}
		r.SkipChildren()
		rows, err := data.LineReader(unit)
		require.NoError(t, err)
		var row dwarf.LineEntry
		directory, _ := unit.Val(dwarf.AttrCompDir).(string)
		isRemoved, isFirst := false, true
		for rows != nil && rows.Next(&row) == nil {
			if isFirst {
				isRemoved = row.Address == 0
			}
			if isFirst = row.EndSequence; !isFirst && !isRemoved && row.Line > 0 && places[row.Address] == "" {
				file := row.File.Name
				if !path.IsAbs(file) { // debug/dwarf does not do this for DWARF 5
					file = path.Join(directory, file)
				}
				places[row.Address] = fmt.Sprintf("%s:%d", path.Clean(file), row.Line)
			}
		}
	}
}

// All functions of compiled programs have the lines from debug/dwarf and from addr2line.
func TestLinesEqualThoseOfOtherReaders(t *testing.T) {
	requireTools(t, "gcc", "g++", "addr2line", "objcopy", "strip")
	for name, c := range map[string]struct {
		options  []string
		relative bool // the compiler gets relative paths
		unread   bool // addr2line of Debian 12 (binutils 2.40) does not read it
	}{
		"DWARF 2":                          {options: []string{"-gdwarf-2", "-gstrict-dwarf"}},
		"64-bit DWARF":                     {options: []string{"-gdwarf-5", "-gdwarf64"}, unread: true},
		"DWARF 5 with a relative path":     {options: []string{"-gdwarf-5"}, relative: true},
		"DWARF 4 with a relative path":     {options: []string{"-gdwarf-4"}, relative: true},
		"compressed":                       {options: []string{"-g", "-gz=zlib"}},
		"DWARF 4 as GNU tools compressed":  {options: []string{"-gdwarf-4", "-gz=zlib-gnu"}, unread: true, relative: true},
		"optimised, with removed code":     {options: []string{"-g", "-O2", "-ffunction-sections", "-Wl,--gc-sections"}},
		"optimised at link time":           {options: []string{"-g", "-O2", "-flto"}},
		"with split debug information":     {options: []string{"-g", "-gsplit-dwarf"}, unread: true},
		"with line tables only":            {options: []string{"-g1"}},
		"at fixed addresses":               {options: []string{"-g", "-no-pie", "-fno-pie"}},
		"built for -finstrument-functions": {options: []string{"-g", "-finstrument-functions"}},
		"paths of another machine":         {options: []string{"-g", "-ffile-prefix-map=" + program(t, "") + "=/usr/src/shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			source := program(t, "lines.cc")
			if c.relative {
				content, err := os.ReadFile(source)
				require.NoError(t, err)
				writeFile(t, dir, "src/lines.cc", content)
				source = "./build/../src/lines.cc"
				require.NoError(t, os.Mkdir(filepath.Join(dir, "build"), 0o755))
			}
			run(t, dir, "g++", append([]string{"-std=c++17", "-o", "lines", source}, c.options...)...)
			file := filepath.Join(dir, "lines")
			want := expectedPlaces(t, file)
			bed := newLinesBed(t, dir, "lines")
			functions, compared := functionsOf(t, file), 0
			for _, addr := range functions {
				got := bed.place(addr)
				if want[addr] == "" {
					assert.Equal(t, NoRow, got, "0x%x", addr)
					continue
				}
				assert.Equal(t, want[addr], got, "0x%x", addr)
				compared++
			}
			assert.Empty(t, bed.noLines)
			assert.GreaterOrEqual(t, compared, 3)
			if strings.Contains(name, "optimised") {
				return // addr2line shows the last row of an address, which is that of an inlined function
			}
			for _, function := range []string{"main", "parse", "_ZNK4shop5Order3payEi", "_ZN4shopL5localEi"} {
				shown := run(t, dir, "addr2line", "-e", file, fmt.Sprintf("0x%x", functions[function]))
				shownFile, line, _ := strings.Cut(strings.TrimSpace(shown), ":")
				if line == "?" && c.unread {
					continue
				}
				assert.Equal(t, path.Clean(shownFile)+":"+line, bed.place(functions[function]), function)
			}
		})
	}
}

// Debug information is found in each place where debuggers look for it, and only in the file of the object.
func TestLinesFromFilesWithDebugInformation(t *testing.T) {
	requireTools(t, "g++", "objcopy", "strip")
	compiled := t.TempDir()
	for _, option := range []string{"-g", "-g0"} {
		run(t, compiled, "g++", "-o", "lines"+option, program(t, "lines.cc"), option)
	}
	// The same code with another build ID: the program was built again.
	run(t, compiled, "g++", "-g", "-o", "again", program(t, "lines.cc"), "-Wl,--build-id=0x0102030405060708")
	content := func(name string) []byte {
		content, err := os.ReadFile(filepath.Join(compiled, name))
		require.NoError(t, err)
		return content
	}
	main := functionsOf(t, filepath.Join(compiled, "lines-g"))["main"]
	buildID := fmt.Sprintf("%x", mappingOf(t, filepath.Join(compiled, "lines-g"), 0).BuildID)
	run(t, compiled, "objcopy", "--only-keep-debug", "lines-g", "debug")
	const found = "/usr/src/shop/main.cc:201"
	for name, c := range map[string]struct {
		options []string // of strip
		link    string   // the name in the debug link
		debug   string   // where the file with debug information is
		content string   // of that file
		want    string
	}{
		"by build ID":                         {debug: "usr/lib/debug/.build-id/" + buildID[:2] + "/" + buildID[2:] + ".debug", want: found},
		"by build ID in a folder for them":    {debug: ".build-id/" + buildID[:2] + "/" + buildID[2:] + ".debug", want: found},
		"beside a program with symbols":       {options: []string{"-g"}, debug: "usr/lib/debug/opt/shop.debug", want: found},
		"by link in the same folder":          {link: "shop.dbg", debug: "opt/shop.dbg", want: found},
		"by link in .debug":                   {link: "shop.dbg", debug: "opt/.debug/shop.dbg", want: found},
		"by link in a root":                   {link: "shop.dbg", debug: "usr/lib/debug/opt/shop.dbg", want: found},
		"of a program that was built again":   {options: []string{"-g"}, debug: "usr/lib/debug/opt/shop.debug", content: "again", want: NoDebugInfo},
		"missing, with symbols":               {options: []string{"-g"}, want: NoDebugInfo},
		"by a link that leaves the directory": {options: []string{"-g"}, link: "../../shop.dbg", debug: "../shop.dbg", want: NoDebugInfo},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "root")
			file := writeFile(t, dir, "opt/shop", content("lines-g"))
			run(t, dir, "strip", append(c.options, file)...)
			if c.debug != "" {
				writeFile(t, dir, c.debug, content(cmp.Or(c.content, "debug")))
			}
			bed := newLinesBed(t, dir, "opt/shop")
			if c.link != "" {
				require.NoError(t, bed.objects.SetDebugLink(bed.objects.loaded[0].base, c.link, 0))
			}
			assert.Equal(t, c.want, bed.place(main))
			if c.want == found {
				assert.Empty(t, bed.noLines)
				return
			}
			require.Len(t, bed.noLines, 1, "one report for an object")
			assert.Contains(t, bed.noLines[0], "/opt/shop: "+ErrNoDebugInfo.Error())
			if c.content == "again" {
				assert.Contains(t, bed.noLines[0], "expected build ID "+buildID+", got 0102030405060708")
			}
			assert.Equal(t, "main", bed.objects.Name(bed.base+main).Qualified, "names do not need debug information")
		})
	}
	for name, c := range map[string]struct {
		isOther bool // the checksum is that of another file
		want    string
	}{
		"by link and checksum without a build ID":           {want: found},
		"by link without a build ID, with another checksum": {isOther: true, want: NoDebugInfo},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			run(t, dir, "g++", "-g", "-o", "shop", program(t, "lines.cc"), "-Wl,--build-id=none")
			main := functionsOf(t, filepath.Join(dir, "shop"))["main"]
			run(t, dir, "objcopy", "--only-keep-debug", "shop", "shop.dbg")
			run(t, dir, "strip", "-g", "shop")
			content, err := os.ReadFile(filepath.Join(dir, "shop.dbg"))
			require.NoError(t, err)
			if c.isOther {
				content = append(content, 0)
			}
			bed := newLinesBed(t, dir, "shop")
			require.NoError(t, bed.objects.SetDebugLink(bed.objects.loaded[0].base, "shop.dbg", crc32.ChecksumIEEE(content)))
			assert.Equal(t, c.want, bed.place(main))
			if c.isOther {
				require.Len(t, bed.noLines, 1)
				assert.Contains(t, bed.noLines[0], "shop.dbg: expected checksum ")
			}
		})
	}
	t.Run("not read if the setting is off", func(t *testing.T) {
		writeFile(t, compiled, "lines", content("lines-g"))
		bed := newLinesBed(t, compiled, "lines", func(s *Settings) { s.SourceLines = false })
		assert.Empty(t, bed.place(main))
		assert.Empty(t, bed.noLines)
	})
	t.Run("beyond the limit", func(t *testing.T) {
		writeFile(t, compiled, "lines", content("lines-g"))
		bed := newLinesBed(t, compiled, "lines", func(s *Settings) { s.MaxLineBytes = 100 })
		assert.Equal(t, Unreadable, bed.place(main))
		require.Len(t, bed.noLines, 1)
		assert.Contains(t, bed.noLines[0], "too much debug information: expected at most 100 bytes")
	})
}
