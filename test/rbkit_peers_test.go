// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
	"github.com/callbraid/callbraid/test/kit/rbkit"
)

// Log lines about a server that the receiver cannot subscribe to, and about one that does not
// answer requests.
const (
	saidLost   = "The connection to the server failed"
	saidSilent = "The server doesn't answer requests"
)

// A wrong peer in place of a server costs only its own line in the log, and servers nothing.
func TestWrongPeersDoNotDisturbRbkitServers(t *testing.T) {
	t.Parallel()
	played := openRbkit(t, "released-30s")
	good, mute, alone, swapped := newRbkitServer(t), newRbkitServer(t), newRbkitServer(t), newRbkitServer(t)
	silent, huge, web := wrongPeer(t, staySilent), wrongPeer(t, announceTooMuch), wrongPeer(t, answerInHTTP)
	silently, lonely := mute.options(played), alone.options(played)
	silently.Mute, lonely.Request = true, ""
	servers := []struct {
		at     rbkitServer
		played *rbkit.Server
	}{{good, good.start(t, played)}, {mute, rbkit.Start(t, silently)}, {alone, rbkit.Start(t, lonely)}}
	swapped.start(t, played)
	swapped.publish, swapped.request = swapped.request, swapped.publish

	began := time.Now()
	c := kit.Start(t, rbkitClient{
		servers:  []rbkitServer{good, mute, alone, swapped, silent.rbkitServer, huge.rbkitServer, web.rbkitServer},
		receiver: "timeout: 3s", // for each time that a silent peer is tried
	}.config())
	testkit.Eventually(t, "wrong peers are tried again", func() (bool, string) {
		return min(silent.accepted.Load(), huge.accepted.Load(), web.accepted.Load()) > 1, ""
	})
	all, _ := eventsOf(played.Messages...)
	for _, s := range servers {
		awaitSubscriber(t, c, s.played)
		for _, m := range played.Messages {
			s.played.Publish(m.Data)
		}
		// The next awaitSubscriber counts messages of all servers.
		testkit.Eventually(t, "all events of "+s.at.publish+" are shown", func() (bool, string) {
			shown := sumOf(t, good.scraped(t), "rbkit_events_total", fmt.Sprintf("instance=%q", rbkitInstance(t, s.at.publish)))
			return shown == all, fmt.Sprint(shown)
		})
	}
	c.Stop(t)

	for _, test := range []struct {
		what string
		of   rbkitServer
		// lost and silent are the errors in the lines of the log. Empty: there is no line, and
		// perhaps: there may be one.
		lost, silent string
	}{
		{"a server", good, "", ""},
		{"one that answers no request", mute, "", "expected a frame, or an answer to PING, got: time ran out"},
		{"one that only publishes", alone, "", "connection refused"},
		{"the two ports swapped", swapped, `expected a socket of type PUB or XPUB, got \"REP\"`, ""},
		{"a silent peer", silent.rbkitServer, "greeting: byte 0: expected a ZMTP 3 greeting, got: time ran out", ""},
		{
			"one that announces 2^62 bytes", huge.rbkitServer,
			"expected a frame of at most 33554432 bytes, got a size of 4611686018427387904", perhaps, // it can disconnect before the request
		},
		{"a server of the web", web.rbkitServer, `expected a ZMTP 3 greeting, got HTTP: \"HTTP/1.1 400 Bad Request\"`, ""},
	} {
		checkLinesOf(t, c, began, test.what, test.of, saidLost, test.lost)
		checkLinesOf(t, c, began, test.what, test.of, saidSilent, test.silent)
	}
}

// perhaps is an error that may be logged or not.
const perhaps = "perhaps"

// checkLinesOf checks that a line of the log is about a server, with the error, and no other of
// that kind except after the pause of such lines.
func checkLinesOf(t *testing.T, c *kit.Collector, since time.Time, what string, of rbkitServer, said, problem string) {
	t.Helper()
	var lines []string
	for line := range strings.Lines(c.Log()) {
		if strings.Contains(line, said) && strings.Contains(line, fmt.Sprintf(`"server": %q`, of.publish)) {
			lines = append(lines, line)
		}
	}
	switch problem {
	case "":
		assert.Empty(t, lines, what)
		return
	case perhaps:
		return
	}
	if assert.NotEmpty(t, lines, "%s: %s", what, said) {
		assert.Contains(t, lines[0], problem, what)
		assert.LessOrEqual(t, len(lines), 1+int(time.Since(since)/logline.Pause), "%s: %q", what, lines)
	}
}

// peer replaces a server, on both of its ports.
type peer struct {
	rbkitServer
	// accepted is the number of connections to its publishing port.
	accepted *atomic.Int64
}

// wrongPeer does something with each connection.
func wrongPeer(t *testing.T, do func(net.Conn)) peer {
	t.Helper()
	p := peer{accepted: &atomic.Int64{}}
	p.publish = listen(t, func(c net.Conn) {
		p.accepted.Add(1)
		do(c)
	})
	p.request = listen(t, do)
	return p
}

// listen accepts connections until the end of the test.
func listen(t *testing.T, do func(net.Conn)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", testkit.Address(t))
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return // it was closed
			}
			serving.Go(func() {
				defer c.Close()
				do(c)
			})
		}
	})
	t.Cleanup(func() {
		assert.NoError(t, listener.Close())
		serving.Wait()
	})
	return listener.Addr().String()
}

func staySilent(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// answerInHTTP answers like a web server that doesn't understand.
func answerInHTTP(c net.Conn) {
	_, _ = c.Read(make([]byte, 1))
	_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

// announceTooMuch speaks ZMTP as a publisher does (RFC 23), and announces a frame of 2^62
// bytes.
func announceTooMuch(c net.Conn) {
	const (
		signature = "\xff\x00\x00\x00\x00\x00\x00\x00\x00\x7f"
		version   = "\x03\x01"
		null      = "NULL\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
		ready     = "\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB"
		frame     = "\x02\x40\x00\x00\x00\x00\x00\x00\x00"
	)
	_, _ = io.WriteString(c, signature+version+null+strings.Repeat("\x00", 32)+ready+frame)
	staySilent(c)
}
