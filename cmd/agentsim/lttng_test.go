// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/sim/lttngrelay"
)

// liveCapture is a capture of the live protocol.
func liveCapture(name string) string {
	return filepath.Join("..", "..", "testdata", "lttng", "live", name+".zip")
}

// inCapture returns the files of a capture below a folder in it, by their names there.
func inCapture(t *testing.T, name, folder string) map[string][]byte {
	t.Helper()
	archive, err := zip.OpenReader(liveCapture(name))
	require.NoError(t, err)
	defer archive.Close()
	files := map[string][]byte{}
	for _, f := range archive.File {
		inside, ok := strings.CutPrefix(f.Name, path.Join(name, folder)+"/")
		if !ok || f.FileInfo().IsDir() {
			continue
		}
		r, err := f.Open()
		require.NoError(t, err)
		files[inside], err = io.ReadAll(r)
		require.NoError(t, err)
	}
	return files
}

// relaying is the command that plays a relay daemon, while it runs.
type relaying struct {
	t       *testing.T
	address string // of the session
	output  chan string
	ended   chan error
}

// relayCommand runs the command until it is asked for its end.
func relayCommand(t *testing.T, args ...string) *relaying {
	t.Helper()
	r, w := io.Pipe()
	root := rootCommand()
	root.SetOut(w)
	root.SetArgs(append([]string{"lttng", "--listen", "127.0.0.1:0"}, args...))
	c := &relaying{t: t, output: make(chan string, 1), ended: make(chan error, 1)}
	go func() {
		c.ended <- root.Execute()
		w.Close()
	}()
	out := bufio.NewReader(r)
	var text strings.Builder
	for c.address == "" {
		line, err := out.ReadString('\n')
		require.NoError(t, err, "output so far: %s", &text)
		text.WriteString(line)
		if rest, ok := strings.CutPrefix(line, "serving "); ok {
			c.address, _, _ = strings.Cut(rest, ": ")
		}
	}
	go func() {
		rest, err := io.ReadAll(out)
		assert.NoError(t, err)
		c.output <- text.String() + string(rest)
	}()
	return c
}

// wait returns what the command has printed when it has ended.
func (c *relaying) wait() string {
	c.t.Helper()
	select {
	case err := <-c.ended:
		require.NoError(c.t, err)
	case <-time.After(time.Minute):
		c.t.Fatal("agentsim runs on for a minute")
	}
	return <-c.output
}

// babeltrace lets babeltrace2 read a session, and returns its text.
func babeltrace(t *testing.T, address string) string {
	t.Helper()
	// Long before go test kills all processes without a message.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "babeltrace2", "--input-format=lttng-live",
		"--clock-gmt", "--no-delta", "--names=all", "--fields=trace:hostname,trace:domain,loglevel", // as the captures' texts
		address)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("babeltrace2 %s: %v\n%s", address, err, stderr.String())
	}
	return stdout.String()
}

// needBabeltrace skips a test where babeltrace2 is missing, or fails it where peers are
// required.
func needBabeltrace(t *testing.T) {
	t.Helper()
	const requirePeers = "CALLBRAID_REQUIRE_PEERS"
	const remedy = "install it (Debian: apt-get install babeltrace2)"
	if _, err := exec.LookPath("babeltrace2"); err == nil {
		return
	}
	if os.Getenv(requirePeers) != "" {
		t.Fatalf("expected babeltrace2 in PATH, since %s is set; %s", requirePeers, remedy)
	}
	t.Skipf("no babeltrace2 in PATH: %s", remedy)
}

// The program tpdemo of the captures has two strings that are sometimes empty:
// babeltrace2 2.0.4 prints, in place of an empty string, what its memory held before.
var sometimesEmpty = regexp.MustCompile(`( (?:str|seqtext) = )"(?:[^"\\]|\\.)*"`)

// comparable returns a text of babeltrace2 without the parts that differ from run to run.
func comparable(text string) []string {
	return strings.Split(sometimesEmpty.ReplaceAllString(text, "$1"), "\n")
}

// babeltrace2 reads from a simulated relay daemon the same text as from the real one.
func TestBabeltraceReadsTheSessionsOfAgentsim(t *testing.T) {
	needBabeltrace(t)
	for _, name := range []string{"jul1", "julctx", "cygok", "cyg1", "tp1", "meta1"} {
		for kind, args := range map[string][]string{
			"a capture":            {liveCapture(name)},
			"a capture, gradually": {liveCapture(name), "--speed", "10x"},
			"a folder":             {traceFolder(t, name), "--name", name},
			"a folder, gradually":  {traceFolder(t, name), "--name", name, "--speed", "10x"},
		} {
			t.Run(name+" as "+kind, func(t *testing.T) {
				t.Parallel()
				relay := relayCommand(t, args...)
				got := comparable(babeltrace(t, relay.address))
				want := comparable(string(inCapture(t, name, "")["babeltrace2-live.txt"]))
				for i := range min(len(want), len(got)) {
					require.Equal(t, want[i], got[i], "line %d", i+1)
				}
				assert.Equal(t, len(want), len(got), "lines")
				assert.Contains(t, relay.wait(), "to 1 viewers; 0 connections broke, 0 by a fault")
			})
		}
	}
}

// traceFolder is the CTF trace of a capture, unpacked.
func traceFolder(t *testing.T, name string) string {
	t.Helper()
	root := t.TempDir()
	for file, content := range inCapture(t, name, "ctf") {
		path := filepath.Join(root, filepath.FromSlash(file))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, content, 0o600))
	}
	return root
}

func TestARelayEndsByAnInterrupt(t *testing.T) {
	relay := relayCommand(t, liveCapture("cyg1"), "--again", "--host", "there", "--name", "it", "--clear", "7", "-v")
	assert.Contains(t, relay.address, "/host/there/it")
	process, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	require.NoError(t, process.Signal(os.Interrupt))
	out := relay.wait()
	assert.Contains(t, out, "14 packets are cleared\n")
	assert.Contains(t, out, "sent 0 events, 0 B in 0 packets, in ")
}

func TestWrongFlagsOfARelayAreNamed(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	capture := liveCapture("cygok")
	for want, args := range map[string][]string{
		"--speed: expected":        {capture, "--speed", "fast"},
		"--minor: expected 4 to":   {capture, "--minor", "3"},
		"--clear: expected":        {capture, "--clear", "-1"},
		"--fault-times: expected":  {capture, "--fault-times", "0"},
		`:N, got "crash:3"`:        {capture, "--fault", "crash:3"},
		`:N, got "stall"`:          {capture, "--fault", "stall"},
		`:N, got "stall:-1"`:       {capture, "--fault", "stall:-1"},
		"no such file":             {"nothing.zip"},
		"the name of the session":  {capture, "--name", strings.Repeat("x", 300)},
		"--listen: listen tcp":     {capture, "--listen", taken.Addr().String()},
		"accepts 1 arg(s), receiv": {},
	} {
		root := rootCommand()
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		root.SetArgs(slices.Concat([]string{"lttng", "--listen", "127.0.0.1:0"}, args))
		assert.ErrorContains(t, root.Execute(), want)
	}
}

func TestFaultsAreReadFromFlags(t *testing.T) {
	for text, want := range map[string]lttngrelay.Fault{
		"":           {},
		"hangup:0":   {Kind: lttngrelay.HangUp},
		"stall:3":    {Kind: lttngrelay.Stall, After: 3},
		"announce:7": {Kind: lttngrelay.Announce, After: 7},
	} {
		got, err := parseFault(text)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
}
