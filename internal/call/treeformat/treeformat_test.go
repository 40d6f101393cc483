// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// started is the begin of the snapshots in the tests.
var started = time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC)

// shop is a tree of calls with every kind of node.
func shop() calltree.Snapshot {
	return calltree.Snapshot{
		Service: "shop",
		From:    started,
		To:      started.Add(10 * time.Second),
		Nodes: []calltree.Node{
			{Parent: -1, Function: "com.example.Main.main", File: "Main.java", Line: 12, Calls: 1, Total: 900, Self: 100},
			{Parent: 0, Function: "com.example.Cart.add", File: "Cart.java", Line: 40, Calls: 3, Errors: 1, Total: 500, Self: 300},
			{Parent: 1, Function: "com.example.Price.of", Calls: 6, Total: 200, Self: 200},
			{Parent: 0, Function: "com.example.Price.of", Calls: 2, Total: 300, Self: 300},
			{Parent: 0, Function: "com.example.Cart.add", File: "Cart.java", Line: 40, Mark: calltree.Truncated, Calls: 1, Total: 0, Self: 0},
			{Parent: -1, Function: calltree.MissingParent.String(), Mark: calltree.MissingParent},
			{Parent: 5, Function: "GET /users; all", Calls: 4, Total: 80, Self: 80},
			{Parent: 5, Function: calltree.Folded.String(), Mark: calltree.Folded, Calls: 9, Total: 20, Self: 20},
		},
	}
}

// allocations is a tree of a profile.
func allocations() calltree.Snapshot {
	return calltree.Snapshot{
		Service: "ruby", Kind: calltree.Kind{Type: "alloc_space", Unit: "bytes"},
		From: started, To: started.Add(time.Second),
		Nodes: []calltree.Node{
			{Parent: -1, Function: "Object#main", File: "app.rb", Line: 3, Calls: 1, Total: 96, Self: 32},
			{Parent: 0, Function: "String#+", Calls: 2, Total: 64, Self: 64},
		},
	}
}

// hostile is a name with every harmful kind of character.
var hostile = "<script>alert(1)</script>\"'&;\n\r\t\x00\u202egnp.exe\u2028 \xff\xfe ../../etc/passwd `${1}` 名前 имя"

// tree parses a tree: a function for each line, two spaces for each depth, and then its self time.
func tree(text string) []calltree.Node {
	var nodes []calltree.Node
	var stack []int32
	for line := range strings.Lines(text) {
		name := strings.TrimSpace(line)
		if name == "" {
			continue
		}
		depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
		stack = stack[:depth]
		n := calltree.Node{Parent: -1, Function: name, Calls: 1}
		if depth > 0 {
			n.Parent = stack[depth-1]
		}
		if name, value, ok := strings.Cut(name, " "); ok {
			n.Function = name
			n.Self, _ = strconv.ParseInt(value, 10, 64) // the tests' own numbers
		}
		stack = append(stack, int32(len(nodes)))
		nodes = append(nodes, n)
	}
	return nodes
}

// text formats a tree for [tree], without nodes that have no value.
func text(nodes []calltree.Node) string {
	var b strings.Builder
	depths := depthsOf(nodes)
	for i, n := range nodes {
		b.WriteString(strings.Repeat("  ", int(depths[i])-1))
		b.WriteString(n.Function)
		if n.Self != 0 {
			b.WriteString(" " + strconv.FormatInt(n.Self, 10))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

var update = flag.Bool("update", false, "write the golden files")

// assertGolden compares with a file of testdata that a person has checked.
func assertGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got), name)
}

// indented is JSON that a person can read.
func indented(t *testing.T, document []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, json.Indent(&b, document, "", "  "))
	return b.Bytes()
}
