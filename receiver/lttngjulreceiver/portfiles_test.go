// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/telemetrytest"
)

// deadPort returns a port without a listener.
func deadPort(t *testing.T) int {
	t.Helper()
	return int(netip.MustParseAddrPort(testkit.Address(t)).Port())
}

// livingPort returns a port with a listening daemon.
func livingPort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().(*net.TCPAddr).Port
}

func contentOf(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(content)
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func withPortFiles(paths ...string) func(*Config) {
	return func(c *Config) { c.PortFiles = paths }
}

func TestThePortFilesExistWhileTheReceiverRuns(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	system := filepath.Join(t.TempDir(), "lttng", "agent.port")
	user := filepath.Join(home, ".lttng", "agent.port")
	require.NoError(t, os.Mkdir(filepath.Dir(user), 0o700))
	b := newBed(t, withPortFiles(system, "~/.lttng/agent.port"))

	for _, path := range []string{system, user} {
		assert.Equal(t, fmt.Sprintln(b.port()), contentOf(path))
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o644), info.Mode(), "agents of all users read it")
	}
	b.Shutdown()
	assert.NoFileExists(t, system)
	assert.NoFileExists(t, user)
	assert.NoDirExists(t, filepath.Dir(system), "the receiver made it")
	assert.DirExists(t, filepath.Dir(user), "it was there before")
}

func TestADirectoryWithOtherFilesStays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lttng", "agent.port")
	b := newBed(t, withPortFiles(file))
	other := filepath.Join(filepath.Dir(file), "lttng-sessiond.pid")
	writeFile(t, other, "1\n")
	b.Shutdown()
	assert.NoFileExists(t, file)
	assert.FileExists(t, other)
}

func TestAStaleFileIsReplaced(t *testing.T) {
	for name, content := range map[string]string{
		"of a daemon that died":                fmt.Sprintln(deadPort(t)),
		"of a daemon that died when it wrote":  "",
		"of a daemon that had no port to tell": "0\n",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "agent.port")
			writeFile(t, file, content)
			b := newBed(t, withPortFiles(file))
			assert.Equal(t, fmt.Sprintln(b.port()), contentOf(file))
			entries, err := os.ReadDir(filepath.Dir(file))
			require.NoError(t, err)
			assert.Len(t, entries, 1, "there is no other file")
		})
	}
}

func TestAFileOfACrashedReceiverIsReplaced(t *testing.T) {
	port, file := deadPort(t), filepath.Join(t.TempDir(), "agent.port")
	writeFile(t, file, fmt.Sprintln(port))
	b := newBed(t, func(c *Config) {
		c.Endpoint = net.JoinHostPort("localhost", strconv.Itoa(port))
		c.PortFiles = []string{file}
	})
	b.Shutdown()
	assert.NoFileExists(t, file)
}

func TestAFileThatIsNotAPortFileStaysAndStartFails(t *testing.T) {
	cases := map[string]struct {
		make func(path string)
		want string
	}{
		"a file without a port": {
			func(path string) { writeFile(t, path, "precious") },
			`: expected a file with a port, got "precious": remove it if no program needs it`,
		},
		"a file that is too long": {
			func(path string) { writeFile(t, path, string(make([]byte, 1000))) },
			": expected a file with a port, got ",
		},
		"a directory": {
			func(path string) { require.NoError(t, os.Mkdir(path, 0o700)) },
			": expected a file with a port, got d",
		},
		"a link": {
			func(path string) { require.NoError(t, os.Symlink("/nowhere", path)) },
			": expected a file with a port, got L",
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			free, taken := filepath.Join(t.TempDir(), "free"), filepath.Join(t.TempDir(), "taken")
			test.make(taken)
			before, content := statOf(t, taken), contentOf(taken)
			b := unstartedBed(t, withPortFiles(free, taken))
			err := b.Component().Start(context.Background(), componenttest.NewNopHost())
			require.ErrorContains(t, err, test.want)
			assert.ErrorContains(t, err, "port_files[1]: "+taken)
			assert.NoFileExists(t, free, "the other file is removed")
			b.Shutdown()
			assert.Equal(t, before, statOf(t, taken))
			assert.Equal(t, content, contentOf(taken))
		})
	}
}

// statOf returns the attributes that identify an unchanged file.
func statOf(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	return fmt.Sprint(info.Mode(), info.Size(), info.ModTime())
}

const linePortFile = "This receiver doesn't own a port file: agents that read it connect elsewhere. Retrying"

func TestAFileOfARunningDaemonStaysUntilItEnds(t *testing.T) {
	daemon, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer daemon.Close()
	port := daemon.Addr().(*net.TCPAddr).Port
	free, taken := filepath.Join(t.TempDir(), "free"), filepath.Join(t.TempDir(), "taken")
	writeFile(t, taken, fmt.Sprintln(port))
	before := statOf(t, taken)
	b := newBed(t, withPortFiles(taken, free))
	assert.Equal(t, fmt.Sprintf("%s has port %d, on which another daemon listens, such as lttng-sessiond or another collector: stop that one, or leave the file out of port_files", taken, port),
		b.AwaitLine(linePortFile).ContextMap()["error"])
	assert.Equal(t, fmt.Sprintln(b.port()), contentOf(free))
	b.Await("more checks", func() bool { return b.Counter("port_files_lost") > 3 })
	assert.Equal(t, before, statOf(t, taken))
	assert.Len(t, b.Log.FilterMessage(linePortFile).All(), 1, "one log line")

	require.NoError(t, daemon.Close())
	b.Await("the file", func() bool { return contentOf(taken) == fmt.Sprintln(b.port()) })
	b.Shutdown()
	assert.NoFileExists(t, taken)
}

// After a boot the directory of the system's file exists only if LTTng's session daemon has created it.
func TestAFileThatCannotBeWrittenIsLoggedAndWrittenLater(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "no", "such")
	file, free := filepath.Join(directory, "agent.port"), filepath.Join(t.TempDir(), "agent.port")
	b, host := unstartedBed(t, withPortFiles(file, free)), telemetrytest.NewStatuses()
	b.Host = host
	b.Start()
	said := b.AwaitLine(linePortFile).ContextMap()["error"]
	assert.Contains(t, said, file+" cannot be written: ")
	assert.Contains(t, said, "mkdir "+directory+": ")
	assert.Contains(t, said, ": make for the collector's user the directory "+directory)
	assert.Equal(t, []any{free}, b.AwaitLine("Listening for LTTng agents").ContextMap()["port_files"])
	assert.Equal(t, fmt.Sprintln(b.port()), contentOf(free))
	b.Await("more checks", func() bool { return b.Counter("port_files_lost") > 3 })
	assert.Len(t, b.Log.FilterMessage(linePortFile).All(), 1, "one log line")
	assert.Len(t, host.All(), 1, "so is the status")
	assert.Contains(t, host.Last(), "StatusRecoverableError: 1 of 2 failed: port file "+file+": ")

	require.NoError(t, os.MkdirAll(directory, 0o700))
	b.Await("the file", func() bool { return contentOf(file) == fmt.Sprintln(b.port()) })
	b.Await("the status", func() bool { return host.Last() == "StatusOK" })
	b.Shutdown()
	assert.Len(t, host.All(), 2, "a shutdown is no failure")
	assert.NoFileExists(t, file)
	assert.DirExists(t, directory, "the receiver didn't make it")
}

func TestPortFilesNeedAnEndpointThatAgentsReach(t *testing.T) {
	b := unstartedBed(t, func(c *Config) {
		c.Endpoint = "127.0.0.2:0"
		c.PortFiles = []string{filepath.Join(t.TempDir(), "agent.port")}
	})
	err := b.Component().Start(context.Background(), componenttest.NewNopHost())
	assert.ErrorContains(t, err, "agents connect to 127.0.0.1: set its host to localhost")
	b.Shutdown()
}

func TestAnErrorNamesAPortInUseAndTheRemedy(t *testing.T) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(livingPort(t)))
	b := unstartedBed(t, func(c *Config) { c.Endpoint = address })
	err := b.Component().Start(context.Background(), componenttest.NewNopHost())
	require.ErrorContains(t, err, "listening for LTTng agents on endpoint "+address)
	assert.ErrorContains(t, err, "if lttng-sessiond runs, it uses the first free port from 5345 to 5354: set endpoint to another port")
	b.Shutdown()
}

func TestAFileThatIsRemovedWhileTheReceiverRunsIsWrittenAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.port")
	b := newBed(t, withPortFiles(file))
	for range 2 {
		require.NoError(t, os.Remove(file))
		b.Await("the file", func() bool { return contentOf(file) == fmt.Sprintln(b.port()) })
	}
	b.AwaitLine("A port file is written again")
	b.Await("both are counted", func() bool { return b.Counter("port_files_lost") >= 2 })
	b.Shutdown()
	assert.NoFileExists(t, file)
}

func TestAFileThatAnotherDaemonWritesMeanwhileStays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.port")
	b := newBed(t, withPortFiles(file))
	theirs := fmt.Sprintln(livingPort(t))
	writeFile(t, file, theirs)
	line := b.AwaitLine(linePortFile)
	assert.Contains(t, line.ContextMap()["error"], "on which another daemon listens")
	b.Await("more checks", func() bool { return b.Counter("port_files_lost") > 3 })
	assert.Len(t, b.Log.FilterMessage(line.Message).All(), 1, "one log line")
	b.Shutdown()
	assert.Equal(t, theirs, contentOf(file))
}
