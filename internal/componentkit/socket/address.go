// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package socket

import "net"

// PeerHost returns the address of a connection's peer without the port.
func PeerHost(conn net.Conn) string {
	host, _ := HostPort(conn.RemoteAddr())
	return host
}

// HostPort returns the parts of an address. The port of an address that is not TCP is 0.
func HostPort(address net.Addr) (host string, port int) {
	if tcp, ok := address.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().String(), tcp.Port
	}
	return address.String(), 0
}
