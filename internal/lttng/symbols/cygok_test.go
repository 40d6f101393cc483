// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// testdata/cygok has the output of a real LTTng session of a C program built with -finstrument-functions: the events
// of loaded objects, each function event with its number, and the output of nm for the program.

// nmSymbols reads the output of nm: functions by address in the file.
func nmSymbols(t *testing.T, file string) map[uint64]string {
	t.Helper()
	symbols := map[uint64]string{}
	for _, line := range lines(t, file) {
		var addr uint64
		var kind, name string
		_, err := fmt.Sscanf(line, "%x %s %s", &addr, &kind, &name)
		require.NoError(t, err, line)
		symbols[addr] = name
	}
	return symbols
}

func lines(t *testing.T, file string) []string {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	var lines []string
	scanner := bufio.NewScanner(f)
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
	}
	require.NoError(t, scanner.Err())
	return lines
}

// cygFile returns a file like that of the traced program, with its build ID and the functions from nm.
func cygFile(t *testing.T, buildID string, symbols map[uint64]string) image {
	id, err := hex.DecodeString(buildID)
	require.NoError(t, err)
	m := image{buildID: string(id), size: 16512}
	for addr, name := range symbols {
		m.symbols = append(m.symbols, imageSymbol{name: name, start: addr})
	}
	return m
}

func TestEveryAddressOfARealSessionHasItsName(t *testing.T) {
	symbols := nmSymbols(t, "testdata/cygok/cyg.nm")
	bed := newFilesBed(t)
	objects := NewObjects(bed.Files, DefaultMaxObjects)
	const program, base = "/opt/d/lttng/prog/cyg", 0x5586c8691000
	calls := map[string]int{}
	callers := map[string]int{}
	for _, line := range lines(t, "testdata/cygok/events.txt") {
		var addr, caller, size uint64
		var followed, text string
		event, rest, _ := strings.Cut(line, " ")
		switch event {
		case "bin_info":
			_, err := fmt.Sscanf(rest, "%v %d %s %s", &addr, &size, &text, &followed)
			require.NoError(t, err, line)
			require.NoError(t, objects.Map(Mapping{Base: addr, Size: size, Path: text, BuildIDFollows: followed == "has_build_id=1"}))
		case "build_id":
			_, err := fmt.Sscanf(rest, "%v %s", &addr, &text)
			require.NoError(t, err, line)
			id, err := hex.DecodeString(text)
			require.NoError(t, err)
			require.NoError(t, objects.SetBuildID(addr, id))
			if addr == base {
				cygFile(t, text, symbols).write(t, bed.dir, program)
			}
		case "debug_link":
			_, err := fmt.Sscanf(rest, "%v %s", &addr, &text)
			require.NoError(t, err, line)
			require.NoError(t, objects.SetDebugLink(addr, text, 0))
		case "func_entry", "func_exit":
			n := 0
			_, err := fmt.Sscanf(rest, "%v %v %d", &addr, &caller, &n)
			require.NoError(t, err, line)
			f := objects.Name(addr)
			assert.Equal(t, symbols[addr-base], f.Qualified, line)
			assert.Equal(t, program, f.Object)
			assert.Equal(t, addr-base, f.Offset)
			assert.True(t, f.Named)
			calls[event+" "+f.Qualified] += n
			callers[objects.Name(caller).Qualified] += n
		}
	}
	assert.Equal(t, map[string]int{
		"func_entry main": 1, "func_entry worker": 3, "func_entry top": 15, "func_entry mid": 15, "func_entry leaf": 30, "func_entry fact": 45,
		"func_exit main": 1, "func_exit worker": 3, "func_exit top": 15, "func_exit mid": 15, "func_exit leaf": 30, "func_exit fact": 45,
	}, calls, "109 calls")
	assert.Equal(t, map[string]int{
		"fact": 60, "mid": 60, "top": 60, "worker": 30, "libc.so.6+0x2724a": 2, "libc.so.6+0x891f5": 6,
	}, callers, "call sites are inside functions; the C library's file is missing")
	assert.Equal(t, 9, objects.Len())
}
