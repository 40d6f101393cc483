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

	"github.com/callbraid/callbraid/internal/javamethods"
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
	command javamethods.Command
	loud    bool
}{
	{name: "badarg", command: javamethods.MonitorCommand{}},
	{name: "blank_i", command: javamethods.ResetCommand{}, loud: true},
	{name: "monitor", command: javamethods.MonitorCommand{}},
	{name: "monitor.abort", command: javamethods.MonitorCommand{}},
	{name: "monitor_i.abort", command: javamethods.MonitorCommand{}, loud: true},
	{name: "nomatch", command: javamethods.MonitorCommand{}},
	{name: "nomatch.abort", command: javamethods.MonitorCommand{}},
	{name: "notfound", command: javamethods.ResetCommand{}},
	{name: "ptrace", command: javamethods.TraceCommand{}},
	{name: "reset", command: javamethods.ResetCommand{}},
	{name: "sc", command: javamethods.ClassesCommand{}},
	{name: "session", command: javamethods.SessionsCommand{}},
	{name: "sessions_after", command: javamethods.SessionsCommand{}},
	{name: "sm", command: javamethods.MethodsCommand{}},
	{name: "stack", command: javamethods.StackCommand{}},
	{name: "stack_i", command: javamethods.StackCommand{}, loud: true},
	{name: "trace", command: javamethods.TraceCommand{}},
	{name: "trace_i", command: javamethods.TraceCommand{}, loud: true},
	{name: "tt", command: javamethods.RecordCommand{}},
	{name: "tt_da", command: javamethods.RecordsCommand{}},
	{name: "tt_s", command: javamethods.RecordsCommand{}},
	{name: "tti", command: javamethods.RecordDetailCommand{}},
	{name: "ttl", command: javamethods.RecordsCommand{}},
	{name: "version", command: javamethods.VersionCommand{}},
	{name: "version_i", command: javamethods.VersionCommand{}, loud: true},

	{name: "characters", command: javamethods.RecordCommand{}},
	{name: "detail_nothing", command: javamethods.RecordDetailCommand{}},
	{name: "detail_objects", command: javamethods.RecordDetailCommand{}},
	{name: "detail_throwable", command: javamethods.RecordDetailCommand{}},
	{name: "expression", command: javamethods.TraceCommand{}},
	{name: "expression_i", command: javamethods.TraceCommand{}, loud: true},
	{name: "fields", command: javamethods.ClassesCommand{}},
	{name: "inherited", command: javamethods.MethodsCommand{}},
	{name: "longnames", command: javamethods.RecordCommand{}},
	{name: "monitor_aborted_i", command: javamethods.MonitorCommand{}, loud: true},
	{name: "noclass", command: javamethods.ClassesCommand{}},
	{name: "nomethod", command: javamethods.MethodsCommand{}},
	{name: "norecord", command: javamethods.RecordDetailCommand{}},
	{name: "recursion_i", command: javamethods.TraceCommand{}, loud: true},
	{name: "threadname_stack", command: javamethods.StackCommand{}},
	{name: "threadname_stack_i", command: javamethods.StackCommand{}, loud: true},
	{name: "threadname_trace_i", command: javamethods.TraceCommand{}, loud: true},
	{name: "throws_i", command: javamethods.TraceCommand{}, loud: true},
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
func golden(t *testing.T, name string, replies []javamethods.Reply, err error) {
	t.Helper()
	var got bytes.Buffer
	for _, r := range replies {
		fmt.Fprintf(&got, "%s ", strings.TrimPrefix(fmt.Sprintf("%T", r), "*javamethods."))
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
