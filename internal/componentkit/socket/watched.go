// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package socket

import "net"

// Watch has the connections of a listener show whether all that arrived on them was read:
// Drained is then exact. Where the system cannot show it, connections stay as they are.
func Watch(listener net.Listener) net.Listener { return watchedListener{listener} }

type watchedListener struct{ net.Listener }

func (l watchedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		return watch(tcp), err
	}
	return conn, err
}

// Drained reports whether all that has arrived on a connection was read, and its reader has
// asked for more. On a connection that is not watched, it reports whether nothing is unread:
// bytes that the reader has just taken from the socket count as read.
func Drained(conn net.Conn) bool {
	// In this order: what was read before the first look has ended the wait before the second.
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

// asksForMore reports whether the reader of a watched connection has found nothing to read.
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
