// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/callbraid/callbraid/internal/greys/sim/greysserver"
	"github.com/callbraid/callbraid/internal/javamethods/server"
	"github.com/callbraid/callbraid/internal/testkit/telemetrytest"
)

// With -Duser.language=ar the released server writes ٢٠٢٦-١١-٢٣, ١٢٫٥٠% and class-cnt:١.
func TestAnswersOfAllLocalesAreRead(t *testing.T) {
	for _, locale := range []greysserver.Locale{greysserver.Arabic, greysserver.Persian, greysserver.Hindi, greysserver.Thai} {
		t.Run(string(locale), func(t *testing.T) {
			t.Parallel()
			// On a slow machine, calls are recorded seconds after they are counted.
			p := play(t, greysserver.Options{Protocol: greysserver.Console, Locale: locale, Program: greysserver.ProgramOptions{Rate: 500, Calls: 2000, Failures: 0.1}})
			b := following(t, func(c *Config) {
				c.Protocol = ProtocolConsole
				c.Monitors = []MonitorConfig{monitor("com.example.*", "*")}
				c.Records = []CallsConfig{some("com.example.*", "*", 3)}
			}, p).start()
			id := p.life().ProcessID
			b.Await("the program to rest", func() bool { return p.life().Rests && p.reported()[id][0] > 0 })
			b.Await("its counts", func() bool { return b.sums()[id] == p.reported()[id] })
			b.Await("recorded calls", func() bool { return len(b.Spans()) == 3 })
			for _, s := range b.Spans() {
				assert.WithinDuration(t, time.Now(), s.EndTimestamp().AsTime(), patience, "the time of the row")
			}
			assert.Zero(t, b.point("replies_malformed"))
			assert.Zero(t, b.Log.FilterMessageSnippet("could not be decoded").Len())
		})
	}
}

// listening listens at a port and answers each connection until the test ends.
func listening(t *testing.T, answer func(net.Conn)) *played {
	t.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	accepting := make(chan struct{})
	go func() {
		defer close(accepting)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			go answer(conn)
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); <-accepting })
	return &played{endpoint: listener.Addr().String()}
}

func TestTheErrorNamesAnotherServiceAtThePort(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	http := &played{endpoint: web.Listener.Addr().String()}
	redis := listening(t, func(conn net.Conn) {
		line := make([]byte, 1024)
		if n, err := conn.Read(line); err == nil {
			_, _ = fmt.Fprintf(conn, "-ERR unknown command %q\r\n", strings.Trim(string(line[:n]), "\x00\n"))
		}
		_ = conn.Close()
	})
	silent := listening(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	for name, tt := range map[string]struct {
		server    *played
		protocols []Protocol
		message   string
	}{
		"an HTTP server":  {http, []Protocol{ProtocolAuto, ProtocolConsole, ProtocolGP}, "an HTTP server answers, not Greys"},
		"a Redis server":  {redis, []Protocol{ProtocolAuto, ProtocolConsole}, "-ERR unknown command"},
		"a silent server": {silent, []Protocol{ProtocolAuto, ProtocolConsole, ProtocolGP}, "the server accepts connections and sends nothing"},
	} {
		for _, protocol := range tt.protocols {
			t.Run(name+", protocol "+string(protocol), func(t *testing.T) {
				t.Parallel()
				b := following(t, func(c *Config) {
					c.Protocol = protocol
					c.GP.ProbeTimeout, c.AnswerTimeout = 100*time.Millisecond, 200*time.Millisecond
					c.Monitors = []MonitorConfig{monitor("com.example.*", "*")}
				}, tt.server).start()
				line := b.awaitLogged("The server cannot be reached")
				assert.Contains(t, fmt.Sprint(line.ContextMap()["error"]), tt.message)
			})
		}
	}
}

// By default an answer may take half a minute. The log must name the problem earlier.
func TestASilentServerIsReportedBeforeItsTimeout(t *testing.T) {
	assert.Less(t, server.UsualSilentAfter, 10*time.Second)
	silent := listening(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	eachProtocol(t, func(t *testing.T, protocol Protocol) {
		host := telemetrytest.NewStatuses()
		b := following(t, func(c *Config) {
			c.Protocol = protocol
			c.GP.ProbeTimeout, c.AnswerTimeout = 10*time.Minute, 10*time.Minute
			c.Monitors = []MonitorConfig{monitor("com.example.*", "*")}
		}, silent)
		b.Host = host
		b.receiver.env.silentAfter = 50 * time.Millisecond
		b.start()
		assert.Equal(t, zapcore.WarnLevel, b.awaitLogged("The server has not identified itself").Level)
		assert.Contains(t, host.Last(), "StatusRecoverableError: 1 of 1 failed: "+silent.endpoint+": it accepts connections, but has not identified itself")
		assert.Zero(t, b.Log.FilterMessageSnippet("cannot be reached").Len(), "the receiver still waits")
	})
}

// The log reminds of a server that the receiver has given up.
func TestAGivenUpServerIsAPermanentErrorAndLoggedRepeatedly(t *testing.T) {
	p := play(t, greysserver.Options{Protocol: greysserver.GP, ProtocolVersion: 2})
	b := following(t, func(c *Config) {
		c.Protocol = ProtocolGP
		c.Monitors = []MonitorConfig{monitor("com.example.*", "*")}
	}, p)
	host := telemetrytest.NewStatuses()
	b.Host = host
	b.receiver.env.repeatAfter = 20 * time.Millisecond
	b.start()
	b.awaitLogged("and the receiver gives up")
	assert.Contains(t, host.Last(), "StatusPermanentError: 1 of 1 failed: "+p.endpoint+": ")
	assert.Contains(t, host.Last(), "does not know version 0x0001")
	assert.Equal(t, "given_up", b.phase())
	b.Await("two more log lines", func() bool { return b.Log.FilterMessageSnippet("still sends this server no commands").Len() >= 2 })
	b.Shutdown()
	assert.EqualValues(t, 1, b.point("connection_failures"), "the receiver does not try again")
}

// The probe has the version: each connection requests it only once, and no send_id is used twice.
func TestByGPTheVersionIsRequestedOnce(t *testing.T) {
	var asked atomic.Int64
	p := play(t, greysserver.Options{Protocol: greysserver.GP, OnCommand: func(command string) {
		if command == "version" {
			asked.Add(1)
		}
	}})
	b := following(t, func(c *Config) { c.Monitors = []MonitorConfig{monitor("com.example.*", "*")} }, p).start()
	b.Await("calls", func() bool { return b.sums()[p.life().ProcessID][0] > 0 })
	assert.Equal(t, "1.7.6.6", b.awaitLogged("Connected to the server").ContextMap()["version"])
	assert.EqualValues(t, 1, asked.Load())
}
