// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package sameorigin

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

// hosts are what the server may be called by those who ask. Who owns a name can let it
// lead to an address that only this machine reaches: then pages of another site are, for a
// browser, of the same site as ours, and could read all of it. An address cannot be made
// to lead elsewhere.
type hosts struct {
	// loopback: only this machine gets here, so names of others are none of ours.
	loopback bool
	names    []string
}

func newHosts(address net.Addr, names []string) hosts {
	tcp, ok := address.(*net.TCPAddr)
	hs := hosts{loopback: ok && tcp.IP.IsLoopback()}
	for _, name := range names {
		hs.names = append(hs.names, canonical(name))
	}
	return hs
}

// allow says whether a Host header names this server: an address, localhost, or one of the
// names; all names where none are told and the server isn't on a loopback address.
func (hs hosts) allow(host string) bool {
	name := canonical(withoutPort(host))
	if address, err := netip.ParseAddr(name); err == nil {
		return address.IsLoopback() || !hs.loopback || slices.Contains(hs.names, name)
	}
	return name == "localhost" || slices.Contains(hs.names, name) || (!hs.loopback && len(hs.names) == 0)
}

// withoutPort is the host of a Host header, without the brackets of addresses.
func withoutPort(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

func canonical(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }
