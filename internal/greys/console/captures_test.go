// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/internal/testkit/capturefile"
)

var update = flag.Bool("update", false, "write the golden files; a person has to check them")

const testdata = "../../../testdata/greys/"

// archives are the captures: of the released server, and of a server built from the same release, attached to a program
// with unusual names, texts and calls.
var archives = []string{"console.zip", "odd.zip"}

// captures returns the recorded answers of real servers, by name.
func captures(tb testing.TB) map[string][]byte {
	tb.Helper()
	read := func(r io.ReaderAt, size int64) (*map[string][]byte, error) {
		files, err := capturefile.Unpack(r, size, capturefile.Limits{File: 1 << 20, All: 8 << 20}, func(string) bool { return true })
		return &files, err
	}
	all := map[string][]byte{}
	for _, archive := range archives {
		files, err := capturefile.Open(testdata+archive, read)
		require.NoError(tb, err)
		for name, content := range *files {
			require.NotContains(tb, all, name)
			all[name] = content
		}
	}
	return all
}

// captured maps each capture to its command. A loud capture was recorded in a session that is not silent.
var captured = []struct {
	name    string
	command greys.Command
	loud    bool
}{
	{name: "badarg", command: greys.MonitorCommand{}},
	{name: "blank_i", command: greys.ResetCommand{}, loud: true},
	{name: "monitor", command: greys.MonitorCommand{}},
	{name: "monitor.abort", command: greys.MonitorCommand{}},
	{name: "monitor_i.abort", command: greys.MonitorCommand{}, loud: true},
	{name: "nomatch", command: greys.MonitorCommand{}},
	{name: "nomatch.abort", command: greys.MonitorCommand{}},
	{name: "notfound", command: greys.ResetCommand{}},
	{name: "ptrace", command: greys.TraceCommand{}},
	{name: "reset", command: greys.ResetCommand{}},
	{name: "sc", command: greys.ClassesCommand{}},
	{name: "session", command: greys.SessionsCommand{}},
	{name: "sessions_after", command: greys.SessionsCommand{}},
	{name: "sm", command: greys.MethodsCommand{}},
	{name: "stack", command: greys.StackCommand{}},
	{name: "stack_i", command: greys.StackCommand{}, loud: true},
	{name: "trace", command: greys.TraceCommand{}},
	{name: "trace_i", command: greys.TraceCommand{}, loud: true},
	{name: "tt", command: greys.RecordCommand{}},
	{name: "tt_da", command: greys.RecordsCommand{}},
	{name: "tt_s", command: greys.RecordsCommand{}},
	{name: "tti", command: greys.RecordDetailCommand{}},
	{name: "ttl", command: greys.RecordsCommand{}},
	{name: "version", command: greys.VersionCommand{}},
	{name: "version_i", command: greys.VersionCommand{}, loud: true},

	{name: "characters", command: greys.RecordCommand{}},
	{name: "detail_nothing", command: greys.RecordDetailCommand{}},
	{name: "detail_objects", command: greys.RecordDetailCommand{}},
	{name: "detail_throwable", command: greys.RecordDetailCommand{}},
	{name: "expression", command: greys.TraceCommand{}},
	{name: "expression_i", command: greys.TraceCommand{}, loud: true},
	{name: "fields", command: greys.ClassesCommand{}},
	{name: "inherited", command: greys.MethodsCommand{}},
	{name: "longnames", command: greys.RecordCommand{}},
	{name: "monitor_aborted_i", command: greys.MonitorCommand{}, loud: true},
	{name: "noclass", command: greys.ClassesCommand{}},
	{name: "nomethod", command: greys.MethodsCommand{}},
	{name: "norecord", command: greys.RecordDetailCommand{}},
	{name: "recursion_i", command: greys.TraceCommand{}, loud: true},
	{name: "threadname_stack", command: greys.StackCommand{}},
	{name: "threadname_stack_i", command: greys.StackCommand{}, loud: true},
	{name: "threadname_trace_i", command: greys.TraceCommand{}, loud: true},
	{name: "throws_i", command: greys.TraceCommand{}, loud: true},
}

// notAsked are captures of commands that the client never sends.
var notAsked = []string{"top", "tt_d", "watch"}

func promptOf(loud bool) string {
	if loud {
		return "\r" + DefaultPrompt
	}
	return ""
}

// endedAs completes a capture that was recorded until the command was aborted: its end is in another file.
func endedAs(name string, content []byte) []byte {
	if name == "monitor" || name == "nomatch" {
		return append(bytes.Clone(content), EndOfReply)
	}
	return content
}

func TestEveryCaptureHasACommand(t *testing.T) {
	known := map[string]bool{}
	for _, c := range captured {
		known[c.name] = true
	}
	for _, name := range notAsked {
		known[name] = true
	}
	for name := range captures(t) {
		assert.True(t, known[strings.TrimSuffix(name, ".raw")], name)
	}
}

func TestCapturesDecodeToTheirGoldenFiles(t *testing.T) {
	all := captures(t)
	for _, c := range captured {
		t.Run(c.name, func(t *testing.T) {
			content, ok := all[c.name+".raw"]
			require.True(t, ok)
			replies, err := answers(c.command, promptOf(c.loud), Config{}, endedAs(c.name, content))
			golden(t, c.name, replies, err)
		})
	}
}

// golden compares replies with a golden file.
func golden(t *testing.T, name string, replies []greys.Reply, err error) {
	t.Helper()
	var got bytes.Buffer
	for _, r := range replies {
		fmt.Fprintf(&got, "%s ", strings.TrimPrefix(fmt.Sprintf("%T", r), "*greys."))
		text := json.NewEncoder(&got)
		text.SetEscapeHTML(false)
		text.SetIndent("", "  ")
		require.NoError(t, text.Encode(r))
	}
	if err != nil {
		fmt.Fprintf(&got, "error: %v\n", err)
	}
	file := filepath.Join(testdata, "golden", name+".txt")
	if *update {
		require.NoError(t, os.WriteFile(file, got.Bytes(), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got.String())
}
