// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package sameorigin

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHosts(t *testing.T) {
	own, err := os.Hostname()
	require.NoError(t, err)
	tcp := func(address string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(address), Port: 4040} }
	for _, test := range []struct {
		what    string
		address net.Addr
		names   []string
		allowed []string
		// looks are allowed for GET and HEAD, and refused for requests that can do harm.
		looks   []string
		refused []string
	}{
		{
			"on loopback", tcp("127.0.0.1"), nil,
			[]string{"localhost", "localhost:4040", "LocalHost.:80", "127.0.0.1:4040", "127.9.9.9", "[::1]:4040", "[::1]"}, nil,
			[]string{"", "evil.example", "evil.example:4040", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1:4040", "[::2]:4040", "0.0.0.0", ":4040", own + ".example"},
		},
		{"on loopback of IPv6", tcp("::1"), nil, []string{"localhost:4040", "[::1]:4040"}, nil, []string{"evil.example:4040"}},
		{
			"on loopback behind a proxy", tcp("127.0.0.1"), []string{"Flames.example", "10.0.0.1"},
			[]string{"localhost:4040", "flames.example", "FLAMES.example:443", "flames.example.", "10.0.0.1:80"}, nil,
			[]string{"evil.example", "a.flames.example", "10.0.0.2"},
		},
		{
			"on all addresses", tcp("::"), nil, []string{"localhost", "10.0.0.1:4040", "[fe80::1%25eth0]:4040", own, own + ".:4040"},
			[]string{"collector:4040", "evil.example:4040", own + ".example", ""}, nil,
		},
		{
			"on all addresses, with names", tcp("0.0.0.0"), []string{"flames.example"},
			[]string{"flames.example:4040", "10.0.0.1:4040", "[fd00::1]", "localhost"}, nil, []string{"evil.example", ""},
		},
		{"on a socket", &net.UnixAddr{Name: "/run/flames"}, nil, []string{"localhost"}, []string{"anything", ""}, nil},
	} {
		t.Run(test.what, func(t *testing.T) {
			hs := newHosts(test.address, test.names)
			for _, host := range test.allowed {
				assert.True(t, hs.allow(host), host)
				assert.True(t, hs.allowToSteer(host), host)
			}
			for _, host := range test.looks {
				assert.True(t, hs.allow(host), host)
				assert.False(t, hs.allowToSteer(host), host)
			}
			for _, host := range test.refused {
				assert.False(t, hs.allow(host), host)
				assert.False(t, hs.allowToSteer(host), host)
			}
		})
	}
}

// A name of another site resolves to this machine. The browser takes both for the same origin.
func TestANameOfAnotherSiteThatResolvesToThisMachineIsRefused(t *testing.T) {
	served := 0
	g := Guard{
		Address: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4040}, MaxQuery: 100, MaxBody: 100,
		Refuse: func(w http.ResponseWriter, _ *http.Request, status int, why string) { http.Error(w, why, status) },
	}
	h := g.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		for host, allowed := range map[string]bool{"evil.example:4040": false, "localhost:4040": true} {
			r := httptest.NewRequest(method, "http://"+host+"/", nil)
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			r.Header.Set("Origin", "http://"+host)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			assert.Equal(t, allowed, w.Code != http.StatusForbidden, "%s %s", method, host)
		}
	}
	assert.Equal(t, 2, served, "only those to localhost")
}

// On a listener for other machines, GET and HEAD may have any name.
func TestOnlyRequestsThatCanDoHarmNeedAnAllowedName(t *testing.T) {
	for _, test := range []struct {
		steers         bool
		method         string
		host           string
		expectedStatus int
	}{
		{true, http.MethodGet, "evil.example", http.StatusOK},
		{true, http.MethodHead, "evil.example", http.StatusOK},
		{true, http.MethodPost, "evil.example", http.StatusForbidden},
		{true, http.MethodDelete, "evil.example", http.StatusForbidden},
		{true, http.MethodPost, "10.0.0.1:8766", http.StatusOK},
		{false, http.MethodPost, "evil.example", http.StatusOK},
	} {
		guard := Guard{
			Address: &net.TCPAddr{IP: net.IPv4zero, Port: 8766}, Steers: test.steers, MaxBody: 1,
			Refuse: func(w http.ResponseWriter, _ *http.Request, status int, _ string) { w.WriteHeader(status) },
		}
		request := httptest.NewRequest(test.method, "/", http.NoBody)
		request.Host = test.host
		answer := httptest.NewRecorder()
		guard.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(answer, request)
		assert.Equal(t, test.expectedStatus, answer.Code, "%+v", test)
	}
}
