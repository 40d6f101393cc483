// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

// The default address of every component is on this machine, both to listen and to connect.
func TestEveryDefaultAddressIsOnThisMachine(t *testing.T) {
	// These have no address by default: they connect to configured servers, or to nothing.
	without := []string{"receiver/ctffilereceiver", "receiver/rbkitreceiver", "receiver/greysreceiver", "receiver/arthasreceiver", "processor/stackpairingprocessor", "connector/stackpairingconnector",
		"exporter/otlpjsonfileexporter", "exporter/perfettoexporter", "extension/memorybudgetextension"}
	for _, c := range components {
		t.Run(c.directory, func(t *testing.T) {
			conf := confmap.New()
			require.NoError(t, conf.Marshal(c.factory.CreateDefaultConfig()))
			found := addresses("", conf.ToStringMap())
			for setting, address := range found {
				assert.True(t, onThisMachine(address), "%s is %s by default: set it to localhost", setting, address)
			}
			assert.Equal(t, slices.Contains(without, c.directory), len(found) == 0, "%v", found)
		})
	}
}

func TestAddressesOnThisMachine(t *testing.T) {
	for address, want := range map[string]bool{
		"localhost:4040": true, "127.0.0.1:4040": true, "[::1]:4040": true,
		"0.0.0.0:4040": false, "[::]:4040": false, ":4040": false, "example.com:4040": false, "10.0.0.1:1": false,
	} {
		found := addresses("", map[string]any{"a": []any{map[string]any{"b": address}}})
		require.Equal(t, map[string]string{"::a::b": address}, found)
		assert.Equal(t, want, onThisMachine(address), address)
	}
	assert.Empty(t, addresses("", map[string]any{"a": "1s", "b": "a:b", "c": 80, "d": "https://x/"}))
}

// addresses are all values of settings that look like host:port, by setting.
func addresses(setting string, value any) map[string]string {
	found := map[string]string{}
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			maps.Copy(found, addresses(setting+"::"+key, inner))
		}
	case []any:
		for _, inner := range v {
			maps.Copy(found, addresses(setting, inner))
		}
	case string:
		if _, port, err := net.SplitHostPort(v); err == nil {
			if _, err := netip.ParseAddrPort("127.0.0.1:" + port); err == nil {
				found[setting] = v
			}
		}
	}
	return found
}

func onThisMachine(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
