// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package socket

import "net"

// Watch wraps a listener so that Drained is exact for its connections. If the system cannot show it, the connections
// stay unchanged.
func Watch(listener net.Listener) net.Listener { return watchedListener{listener} }

type watchedListener struct{ net.Listener }

func (l watchedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		return watch(tcp), err
	}
	return conn, err
}

// Drained reports whether the reader of a connection has read and processed all received bytes, and has begun the next
// read. On a connection that is not watched, it reports whether no byte is unread: bytes that the reader processes now
// count as read.
func Drained(conn net.Conn) bool {
	// The order matters: a read before the first check has ended the wait before the second check.
	return !Unread(conn) && asksForMore(conn)
}

// OnWait has f called whenever the reader of a watched connection has read all that has arrived:
// from then on Drained can be true. f must not use the connection's reads. On other connections it
// has no effect.
func OnWait(conn net.Conn, f func()) {
	for {
		if w, ok := conn.(interface{ setOnWait(func()) }); ok {
			w.setOnWait(f)
			return
		}
		above, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return
		}
		conn = above.NetConn()
	}
}

// asksForMore reports whether the reader of a watched connection waits for bytes.
func asksForMore(conn net.Conn) bool {
	for {
		if w, ok := conn.(interface{ asksForMore() bool }); ok {
			return w.asksForMore()
		}
		above, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return true
		}
		conn = above.NetConn()
	}
}
