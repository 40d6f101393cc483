// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package symbols

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ianlancetaylor/demangle"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// requirePeers is the environment variable that turns a missing tool into a failure.
const requirePeers = "CALLBRAID_REQUIRE_PEERS"

// requireTools skips the test if a tool is missing.
func requireTools(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err == nil {
			continue
		}
		const remedy = "install a C++ compiler with its tools (Debian: apt-get install g++)"
		if os.Getenv(requirePeers) != "" {
			t.Fatalf("expected %s in PATH, since %s is set; %s", tool, requirePeers, remedy)
		}
		t.Skipf("no %s in PATH: %s", tool, remedy)
	}
}

// run runs a program in a directory and returns its output.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	require.NoError(t, cmd.Run(), "%s %s\n%s", name, strings.Join(args, " "), &stderr)
	return stdout.String()
}

// program returns the absolute path of a file in testdata/programs.
func program(t *testing.T, name string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join("testdata", "programs", name))
	require.NoError(t, err)
	return file
}

// mappingOf returns the Mapping of a file at base, as LTTng reports it.
func mappingOf(t *testing.T, file string, base uint64) Mapping {
	t.Helper()
	f, err := elf.Open(file)
	require.NoError(t, err)
	defer f.Close()
	l, err := layoutOf(f)
	require.NoError(t, err)
	id, err := buildID(f)
	require.NoError(t, err)
	m := Mapping{Base: base, Size: l.memorySize, Path: file, BuildID: []byte(id)}
	if s := f.Section(".gnu_debuglink"); s != nil {
		data, err := s.Data()
		require.NoError(t, err)
		m.DebugLink = string(data[:bytes.IndexByte(data, 0)])
	}
	return m
}

// A program prints the addresses of its objects and functions. The addresses have the right names with all kinds of
// linking.
func TestAddressesOfRunningPrograms(t *testing.T) {
	requireTools(t, "gcc", "strip", "objcopy")
	for name, c := range map[string]struct {
		main, library []string // options of the compiler
		after         func(t *testing.T, dir string)
		unnamed       []string // functions that lose their names
	}{
		"position-independent":            {main: []string{"-pie", "-fPIE"}},
		"at fixed addresses":              {main: []string{"-no-pie", "-fno-pie"}},
		"at other fixed addresses":        {main: []string{"-no-pie", "-fno-pie", "-Wl,-Ttext-segment=0x10000000"}},
		"a library that begins at 64 KiB": {main: []string{"-pie", "-fPIE"}, library: []string{"-Wl,-Ttext-segment=0x10000"}},
		"without build ID":                {main: []string{"-pie", "-fPIE", "-Wl,--build-id=none"}, library: []string{"-Wl,--build-id=none"}},
		"with a short build ID":           {main: []string{"-pie", "-fPIE", "-Wl,--build-id=0xabcd"}},
		"segments of large pages":         {main: []string{"-pie", "-fPIE", "-Wl,-z,max-page-size=0x200000"}, library: []string{"-Wl,-z,max-page-size=0x200000"}},
		"without separated code":          {main: []string{"-no-pie", "-fno-pie", "-Wl,-z,noseparate-code"}, library: []string{"-Wl,-z,noseparate-code"}},
		"stripped": {
			main: []string{"-pie", "-fPIE"},
			after: func(t *testing.T, dir string) {
				run(t, dir, "strip", "main", "libshop.so")
			},
			unnamed: []string{"main", "own", "shop_check"},
		},
		"stripped except for a debug link": {
			main: []string{"-pie", "-fPIE", "-g"}, library: []string{"-g"},
			after: func(t *testing.T, dir string) {
				require.NoError(t, os.Mkdir(filepath.Join(dir, ".debug"), 0o755))
				for _, file := range []string{"main", "libshop.so"} {
					run(t, dir, "objcopy", "--only-keep-debug", file, ".debug/"+file+".dbg")
					run(t, dir, "strip", file)
					run(t, dir, "objcopy", "--add-gnu-debuglink=.debug/"+file+".dbg", file)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			library := append([]string{"-O1", "-shared", "-fPIC", "-o", "libshop.so", program(t, "shop.c")}, c.library...)
			run(t, dir, "gcc", library...)
			main := append([]string{"-O1", "-o", "main", program(t, "main.c"), "libshop.so", "-Wl,-rpath," + dir}, c.main...)
			run(t, dir, "gcc", main...)
			if c.after != nil {
				c.after(t, dir)
			}
			checkRunning(t, dir, c.unnamed)
		})
	}
}

// checkRunning runs dir/main and checks the names of the addresses in its output.
func checkRunning(t *testing.T, dir string, unnamed []string) {
	t.Helper()
	settings := DefaultSettings()
	settings.Paths = []string{"/"}
	settings.Report = func(object string, err error) {
		if strings.HasPrefix(object, dir) && len(unnamed) == 0 {
			t.Errorf("%s: %v", object, err)
		}
	}
	files, err := NewFiles(settings)
	require.NoError(t, err)
	objects := NewObjects(files, DefaultMaxObjects)
	functions := 0
	for _, line := range strings.Split(strings.TrimSpace(run(t, dir, filepath.Join(dir, "main"))), "\n") {
		var kind, name string
		var addr uint64
		_, err := fmt.Sscanf(line, "%s %v %s", &kind, &addr, &name)
		require.NoError(t, err, line)
		if kind == "object" {
			if strings.HasPrefix(name, dir) {
				require.NoError(t, objects.Map(mappingOf(t, name, addr)))
			}
			continue
		}
		functions++
		f := objects.Name(addr)
		for _, lost := range unnamed {
			if name == lost {
				name = fmt.Sprintf("%s+0x%x", filepath.Base(f.Object), f.Offset)
			}
		}
		assert.Equal(t, name, f.Text)
		if f.Named {
			assert.Equal(t, name, objects.Name(addr+3).Text, "inside the function")
		}
	}
	assert.Equal(t, 6, functions)
	assert.Equal(t, 2, objects.Len())
}

// All functions of C++ programs have the names from nm, without the parts that Qualified omits: return types,
// parameters and tags.
func TestNamesEqualThoseOfNM(t *testing.T) {
	requireTools(t, "g++", "nm")
	for name, c := range map[string]struct {
		options []string
		least   int // functions
	}{
		"a program":                 {nil, 60},
		"optimised":                 {[]string{"-O2"}, 30},
		"with everything linked in": {[]string{"-static"}, 4000},
	} {
		if testing.Short() && c.least > 30 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			run(t, dir, "g++", append([]string{"-std=c++17", "-o", "names", program(t, "names.cc")}, c.options...)...)
			file := filepath.Join(dir, "names")
			files, err := NewFiles(DefaultSettings())
			require.NoError(t, err)
			objects := NewObjects(files, DefaultMaxObjects)
			f, err := elf.Open(file)
			require.NoError(t, err)
			defer f.Close()
			l, err := layoutOf(f)
			require.NoError(t, err)
			base := l.first
			if !l.fixed {
				base += 0x555555554000
			}
			require.NoError(t, objects.Map(mappingOf(t, file, base)))

			aliases := functionsOfNM(t, file)
			require.Greater(t, len(aliases), c.least)
			t.Logf("%d functions", len(aliases))
			for addr, names := range aliases {
				got := objects.Name(addr + base - l.first)
				require.Contains(t, names, got.Text, "0x%x", addr)
				assert.Equal(t, bare(names[got.Text]), bare(got.Qualified), "0x%x %s: nm says %s, Qualified is %s", addr, got.Text, names[got.Text], got.Qualified)
			}
		})
	}
}

// functionsOfNM returns the functions of a file by address: each symbol with its name from nm -C.
func functionsOfNM(t *testing.T, file string) map[uint64]map[string]string {
	t.Helper()
	// -f sysv prints the type of a symbol, the usual format does not.
	mangled := strings.Split(run(t, "", "nm", "-p", "-f", "sysv", file), "\n")
	shown := strings.Split(run(t, "", "nm", "-p", "-C", "-f", "bsd", "--defined-only", file), "\n")
	demangled := map[string][]string{}
	for _, line := range shown {
		if len(line) > 19 {
			demangled[line[:16]] = append(demangled[line[:16]], line[19:])
		}
	}
	functions := map[uint64]map[string]string{}
	position := map[string]int{}
	for _, line := range mangled {
		fields := strings.Split(line, "|")
		if len(fields) != 7 || strings.TrimSpace(fields[2]) == "U" || strings.TrimSpace(fields[1]) == "" {
			continue
		}
		name, addr, typ := strings.TrimSpace(fields[0]), fields[1], strings.TrimSpace(fields[3])
		i := position[addr]
		position[addr]++
		if typ != "FUNC" && typ != "IFUNC" && typ != "<OS specific>: 10" {
			continue
		}
		var n uint64
		_, err := fmt.Sscanf(addr, "%x", &n)
		require.NoError(t, err, line)
		if functions[n] == nil {
			functions[n] = map[string]string{}
		}
		require.Less(t, i, len(demangled[addr]), line)
		functions[n][name] = demangled[addr][i]
	}
	return functions
}

var (
	abiTag    = regexp.MustCompile(`\[abi:[^\]]*\]`)
	cloneMark = regexp.MustCompile(`( \[clone [^\]]*\])+$|@.*$|(\.(isra|part|constprop|cold|lto_priv)(\.\d+)*)+$`)
	trailing  = regexp.MustCompile(`( const| volatile| &&?)+$`)
)

// bare removes everything in parentheses, tags, marks of clones, and everything before the name. The rest of nm's
// names and of Qualified is equal.
func bare(s string) string {
	s = cloneMark.ReplaceAllString(abiTag.ReplaceAllString(s, ""), "")
	for _, prefix := range []string{"non-virtual thunk to ", "virtual thunk to "} {
		s = strings.TrimPrefix(s, prefix)
	}
	s = strings.ReplaceAll(s, "(anonymous namespace)", "{anonymous}")
	s = strings.ReplaceAll(s, "operator()", "operator{call}")
	var b strings.Builder
	depth := 0
	for _, r := range s {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case depth == 0:
			b.WriteRune(r)
		}
	}
	s = trailing.ReplaceAllString(b.String(), "")
	s = strings.ReplaceAll(s, " const::", "::")
	return s[lastSpace(s)+1:]
}

// lastSpace returns the index of the last space outside angle brackets that can separate a return type, or -1.
func lastSpace(s string) int {
	at, depth := -1, 0
	for i := range len(s) {
		switch {
		case strings.HasPrefix(s[i:], "operator"):
			return at
		case s[i] == '<' || s[i] == '{':
			depth++
		case s[i] == '>' || s[i] == '}':
			depth--
		case s[i] == ' ' && depth == 0:
			at = i
		}
	}
	return at
}

func TestDemangledTextEqualsThatOfNM(t *testing.T) {
	requireTools(t, "g++", "nm")
	dir := t.TempDir()
	run(t, dir, "g++", "-std=c++17", "-o", "names", program(t, "names.cc"))
	compared := 0
	for _, names := range functionsOfNM(t, filepath.Join(dir, "names")) {
		for symbol, shown := range names {
			assert.Equal(t, shown, demangle.Filter(symbol), symbol)
			compared++
		}
	}
	assert.Greater(t, compared, 60)
}
