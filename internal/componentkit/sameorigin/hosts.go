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

// hosts has the allowed names of the server. They are necessary against DNS rebinding. The owner of a name can let it
// resolve to an address of this machine or network. Then a browser treats pages of the other site like pages of this
// server: they can read all responses and send all commands. An address cannot be abused in this way.
type hosts struct {
	// loopback: only this machine can connect, so names of other machines are not allowed.
	loopback bool
	names    []string
	// own is the name of this machine; empty: unknown.
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

// allow reports whether a request may have a Host header. The header names this server, or no names are configured and
// other machines can connect.
func (hs hosts) allow(host string) bool {
	return hs.isOurs(host) || !hs.loopback && len(hs.names) == 0
}

// allowToSteer reports whether a request that can do harm may have a Host header. The header names this server, or it is
// the machine's name and other machines can connect.
func (hs hosts) allowToSteer(host string) bool {
	return hs.isOurs(host) || !hs.loopback && hs.own != "" && nameOf(host) == hs.own
}

// isOurs reports whether a Host header names this server: an address, localhost, or an allowed name.
func (hs hosts) isOurs(host string) bool {
	name := nameOf(host)
	if address, err := netip.ParseAddr(name); err == nil {
		return address.IsLoopback() || !hs.loopback || slices.Contains(hs.names, name)
	}
	return name == "localhost" || slices.Contains(hs.names, name)
}

// nameOf returns the host of a Host header, without its port and the brackets of addresses.
func nameOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return canonical(name)
	}
	return canonical(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
}

func canonical(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }
