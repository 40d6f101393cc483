// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configtls"

	"github.com/callbraid/callbraid/internal/greys/sim/greysserver"
)

// The receiver logs the received bytes, tries again, and can be shut down.
func TestOtherPeersAreLoggedAndTriedAgain(t *testing.T) {
	floods := func(text string) func(net.Conn) {
		return func(conn net.Conn) {
			for {
				if _, err := io.WriteString(conn, text); err != nil {
					return
				}
			}
		}
	}
	for name, serve := range map[string]func(net.Conn){
		"silence":            func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) },
		"the end":            func(net.Conn) {},
		"a web server":       func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n") },
		"a line without end": floods(strings.Repeat("x", 4096)),
		"zeros without end":  floods(strings.Repeat("\x00", 4096)),
		"0x04 without end":   floods(strings.Repeat("\x04", 4096)),
		"borders":            floods("+---+---+\n"),
	} {
		for _, protocol := range []Protocol{ProtocolAuto, ProtocolGP, ProtocolConsole} {
			t.Run(string(protocol)+" "+name, func(t *testing.T) {
				t.Parallel()
				b := newBed(t, func(c *Config) {
					c.Servers[0].Endpoint = listen(t, serve)
					c.Protocol = protocol
					c.Monitors = []MonitorConfig{monitor("com.example.*", "*")}
					c.GP.ProbeTimeout, c.GP.MaxFrameBytes = 50*time.Millisecond, 64<<10
					c.Timeout, c.AnswerTimeout = 100*time.Millisecond, 100*time.Millisecond
					c.Limits.MaxReplyBytes = 64 << 10
				}).start()
				b.Await("two tries", func() bool { return b.point("connection_failures") >= 2 })
				b.Shutdown()
				assert.NotEmpty(t, b.Log.FilterMessageSnippet("The server cannot be reached").All())
				assert.Empty(t, b.Spans())
			})
		}
	}
}

func TestAProxyBeforeAServerSpeaksTLS(t *testing.T) {
	web := httptest.NewTLSServer(http.NotFoundHandler())
	defer web.Close()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	server, err := greysserver.New(greysserver.Options{Speed: 50, EndDelay: time.Millisecond, ProcessID: 7})
	require.NoError(t, err)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: web.TLS.Certificates})
	require.NoError(t, err)
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		end()
		assert.NoError(t, <-served)
	})
	for _, protocol := range []Protocol{ProtocolGP, ProtocolConsole} {
		following := func(pem string) *bed {
			return newBed(t, func(c *Config) {
				c.Servers[0] = ServerConfig{Endpoint: listener.Addr().String(), TLS: configoptional.Some(configtls.ClientConfig{
					Config: configtls.Config{CAPem: configopaque.String(pem)},
				})}
				c.Protocol = protocol
				c.Monitors = []MonitorConfig{monitor("com.example.*", "*")}
				c.CollectionInterval = 100 * time.Millisecond
			})
		}
		b := following(string(certificate)).start()
		b.Await("calls", func() bool { return b.sums()[0][0]+b.sums()[7][0] > 0 }) // by GP the ID is unknown
		b.Shutdown()

		b = following("").start()
		line := b.awaitLogged("The server cannot be reached")
		assert.Contains(t, fmt.Sprint(line.ContextMap()["error"]), "certificate signed by unknown authority")
		b.Shutdown()
	}
	b := newBed(t, func(c *Config) {
		c.Servers[0].TLS = configoptional.Some(configtls.ClientConfig{Config: configtls.Config{CAFile: "/nowhere.pem"}})
		c.Monitors = []MonitorConfig{monitor("com.example.*", "*")}
	})
	assert.ErrorContains(t, b.Component().Start(t.Context(), componenttest.NewNopHost()), "servers[0].tls: ")
	b.Shutdown()
}
