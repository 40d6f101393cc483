// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"bufio"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/greys/console"
	"github.com/callbraid/callbraid/internal/testkit/capturefile"
	"github.com/callbraid/callbraid/internal/testkit/goldenfiles"
)

// captures returns the recorded answers of a real server, by name.
func captures(t testing.TB) map[string][]byte {
	t.Helper()
	read := func(r io.ReaderAt, size int64) (*map[string][]byte, error) {
		files, err := capturefile.Unpack(r, size, capturefile.Limits{File: mib, All: 8 * mib}, func(string) bool { return true })
		return &files, err
	}
	files, err := capturefile.Open(filepath.Join("..", "..", "testdata", "greys", "console.zip"), read)
	require.NoError(t, err)
	return *files
}

// affectedText is the server's notice before the answers of a command, as captured in a session that is not silent.
const affectedText = "Press Ctrl+D to abort.\nAffect(class-cnt:2 , method-cnt:4) cost in 21 ms.\n"

// playCaptures plays a server with the answers of a real one, and returns its address.
func playCaptures(t *testing.T) string {
	t.Helper()
	files := captures(t)
	const prompt = "\r" + console.DefaultPrompt
	text := func(name string) string {
		return strings.TrimSuffix(strings.TrimSuffix(string(files[name+".raw"]), string(rune(console.EndOfReply))), prompt)
	}
	// A command that does not end by itself ends when it is aborted.
	answerTo := func(line string) (answer string, isOpen bool) {
		switch word := strings.Fields(line)[0]; {
		case word == "session", word == "version", word == "sc", word == "sm":
			return text(word), false
		case word == "monitor":
			return affectedText + text("monitor"), true
		case word == "trace":
			return text("trace_i"), false
		case word == "stack":
			return text("stack_i"), false
		case strings.HasPrefix(line, "tt -t"):
			return affectedText + text("tt"), false
		case line == "tt -i 1001":
			return text("tti"), false
		case strings.HasPrefix(line, "tt -i"):
			return "Time fragment[" + strings.Fields(line)[2] + "] does not exist.\n", false
		default:
			return "", false
		}
	}
	return listen(t, func(conn net.Conn) {
		lines, end := bufio.NewReader(conn), string(rune(console.EndOfReply))
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			line = strings.TrimSuffix(line, "\n")
			if line == "session -s false" {
				end = prompt + string(rune(console.EndOfReply))
			}
			answer, isOpen := answerTo(line)
			_, _ = io.WriteString(conn, answer) // the next line reports an error
			if !isOpen {
				_, _ = io.WriteString(conn, end)
				continue
			}
			if _, err := lines.ReadByte(); err != nil { // the read waits for the abort
				return
			}
			_, _ = conn.Write(files["monitor_i.abort.raw"])
		}
	})
}

// listen serves connections until the test ends, and returns the address.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
			serving.Go(func() {
				serve(conn)
				_ = conn.Close() // the test has seen everything that it needs
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, conn := range open {
			_ = conn.Close()
		}
		mu.Unlock()
		serving.Wait()
	})
	return listener.Addr().String()
}

// testdata/golden/README.md explains the files. This writes them: go test -run Golden -update.
func TestGoldenCaptures(t *testing.T) {
	for name, test := range map[string]struct {
		set            func(*Config)
		records, spans int
		methods        int
	}{
		"monitor": {set: func(c *Config) { c.Monitors = []MonitorConfig{monitor("demo.*", "*")} }, methods: 3},
		"trace":   {set: func(c *Config) { c.Traces = []CallsConfig{some("demo.Shop", "checkout", 1)} }, spans: 7},
		"tt":      {set: func(c *Config) { c.Records = []CallsConfig{some("demo.Shop", "checkout", 4)} }, spans: 4},
		"stack":   {set: func(c *Config) { c.Stacks = []CallsConfig{some("demo.Shop", "checkout", 1)} }, records: 1},
		"classes": {set: func(c *Config) { c.Classes = []ClassesConfig{{Class: "demo.*"}} }, records: 2},
		"methods": {set: func(c *Config) {
			c.Methods = []MethodsConfig{{TargetConfig: TargetConfig{Class: "demo.*", Method: "*"}}}
		}, records: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, func(c *Config) {
				c.Protocol, c.Timezone = ProtocolConsole, "Europe/Berlin"
				c.Servers[0] = ServerConfig{Endpoint: playCaptures(t)}
				test.set(c)
			})
			b.receiver.env.config.ResourceAttributes = map[string]any{"service.instance.id": "shop.example:3658"}
			b.receiver.env.Now = func() time.Time { return receivedAt }
			b.start()
			b.Await("the results of the capture", func() bool {
				return len(b.Records("greys.class"))+len(b.Records("greys.method"))+len(b.Records("greys.stack")) >= test.records && len(b.Spans()) >= test.spans &&
					(test.methods == 0 || values(b.collect(), "java.method.calls")["demo.Shop.checkout"] == 32)
			})
			metrics := b.collect()
			b.Shutdown()
			folder := filepath.Join("testdata", "golden", name)
			goldenfiles.Compare(t, folder, b.Traces.AllTraces(), b.Logs.AllLogs())
			if test.methods > 0 {
				goldenfiles.CompareMetrics(t, folder, metrics)
			}
		})
	}
}
