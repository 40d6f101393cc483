// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package sameorigin

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// hosts are what the server may be called by those who ask. Who owns a name can let it
// lead to an address that only this machine reaches, or only this network: then pages of
// another site are, for a browser, of the same site as ours, and could read all of it, and
// order all that can be ordered. An address cannot be made to lead elsewhere.
type hosts struct {
	// loopback: only this machine gets here, so names of others are none of ours.
	loopback bool
	names    []string
	// own is the name of this machine; empty: it has none.
	own string
}

func newHosts(address net.Addr, names []string) hosts {
	tcp, ok := address.(*net.TCPAddr)
	hs := hosts{loopback: ok && tcp.IP.IsLoopback()}
	for _, name := range names {
		hs.names = append(hs.names, canonical(name))
	}
	if own, err := os.Hostname(); err == nil {
		hs.own = canonical(own)
	}
	return hs
}

// allow says whether a Host header may be that of a request: it names this server, or no
// names are told and the server isn't on a loopback address.
func (hs hosts) allow(host string) bool {
	return hs.isOurs(host) || !hs.loopback && len(hs.names) == 0
}

// allowToSteer says whether a Host header may be that of a request that can do harm: it names
// this server, or is this machine's name where others reach it.
func (hs hosts) allowToSteer(host string) bool {
	return hs.isOurs(host) || !hs.loopback && hs.own != "" && nameOf(host) == hs.own
}

// isOurs says whether a Host header names this server: an address, localhost, or one of the names.
func (hs hosts) isOurs(host string) bool {
	name := nameOf(host)
	if address, err := netip.ParseAddr(name); err == nil {
		return address.IsLoopback() || !hs.loopback || slices.Contains(hs.names, name)
	}
	return name == "localhost" || slices.Contains(hs.names, name)
}

// nameOf is the host of a Host header, without its port and the brackets of addresses.
func nameOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return canonical(name)
	}
	return canonical(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
}

func canonical(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }
