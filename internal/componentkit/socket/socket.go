// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package socket answers questions about sockets and files that only the system knows.
package socket

import "net"

// Below returns the innermost connection of one that wraps others, such as that of TLS.
func Below(conn net.Conn) net.Conn {
	for {
		above, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return conn
		}
		conn = above.NetConn()
	}
}
