// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package openlistener

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configtls"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// pipe is an address of a kind that the package does not know.
type pipe string

func (pipe) Network() string  { return "pipe" }
func (p pipe) String() string { return string(p) }

func tcp(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 8765} }

func TestAnOpenListenerHasAWarning(t *testing.T) {
	encrypts, asks := &configtls.ServerConfig{}, &configtls.ServerConfig{ClientCAFile: "ca.pem"}
	for name, c := range map[string]struct {
		listener Listener
		want     string
	}{
		"IPv4 loopback is this machine":                     {Listener{Address: tcp("127.0.0.1")}, ""},
		"another address of 127.0.0.0/8 is this machine":    {Listener{Address: tcp("127.0.1.1")}, ""},
		"IPv6 loopback is this machine":                     {Listener{Address: tcp("::1")}, ""},
		"IPv4 loopback written as IPv6 is this machine":     {Listener{Address: tcp("::ffff:127.0.0.1")}, ""},
		"a unix socket is this machine":                     {Listener{Address: &net.UnixAddr{Name: "/run/x", Net: "unix"}}, ""},
		"a loopback address of another type":                {Listener{Address: pipe("127.0.0.1:80")}, ""},
		"loopback as IPv6 of another type":                  {Listener{Address: pipe("[::ffff:127.0.0.1]:80")}, ""},
		"the IPv4 wildcard is open":                         {Listener{Address: tcp("0.0.0.0")}, WithoutTLS},
		"the IPv6 wildcard is open":                         {Listener{Address: tcp("::")}, WithoutTLS},
		"an address without IP is a wildcard":               {Listener{Address: &net.TCPAddr{Port: 1}}, WithoutTLS},
		"a private address is open":                         {Listener{Address: tcp("10.1.2.3")}, WithoutTLS},
		"a public IPv6 address is open":                     {Listener{Address: tcp("2001:db8::1")}, WithoutTLS},
		"a link-local address is open":                      {Listener{Address: &net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0"}}, WithoutTLS},
		"an open address of another type":                   {Listener{Address: pipe("192.0.2.7:80")}, WithoutTLS},
		"an address that cannot be read counts as open":     {Listener{Address: pipe(`\\.\pipe\x`)}, WithoutTLS},
		"TLS without client certificates is open":           {Listener{Address: tcp("::"), TLS: encrypts}, WithoutCertificates},
		"TLS on loopback":                                   {Listener{Address: tcp("::1"), TLS: encrypts}, ""},
		"client certificates authenticate clients":          {Listener{Address: tcp("::"), TLS: asks}, ""},
		"an authenticator authenticates clients":            {Listener{Address: tcp("::"), Authenticated: true}, ""},
		"an authenticator with TLS authenticates clients":   {Listener{Address: tcp("::"), TLS: encrypts, Authenticated: true}, ""},
		"a wildcard with TLS and no authenticator is open":  {Listener{Address: tcp("0.0.0.0"), TLS: encrypts}, WithoutCertificates},
		"client certificates suffice without authenticator": {Listener{Address: tcp("0.0.0.0"), TLS: asks}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			core, said := observer.New(zap.DebugLevel)
			c.listener.Component, c.listener.Remedy = "bytefrog/2", "listen on localhost"
			c.listener.Warn(zap.New(core))
			if c.want == "" {
				assert.Zero(t, said.Len())
				return
			}
			require.Equal(t, 1, said.Len())
			line := said.All()[0]
			assert.Equal(t, zap.WarnLevel, line.Level)
			assert.Equal(t, c.want, line.Message)
			assert.Equal(t, map[string]any{"component": "bytefrog/2", "address": c.listener.Address.String(), "remedy": "listen on localhost"}, line.ContextMap())
		})
	}
}

// A host name counts as the address that it resolves to.
func TestAHostNameIsTheAddressItResolvesTo(t *testing.T) {
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	defer listener.Close()
	assert.False(t, reachable(listener.Addr()), listener.Addr())
}
