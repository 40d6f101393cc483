// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greys

import "net"

// Roomy is a connection whose memory somebody counts.
type Roomy interface {
	// Room says that so many bytes more are held for the connection, or fewer. The error is
	// that there is no room for them; the connection has to end then.
	Room(more int) error
}

// Room is what one part of a client holds for a connection. It is for one goroutine at a time.
type Room struct {
	of   Roomy
	held int
}

// RoomOf is the room of a connection, which has all that is asked for if nobody counts it.
func RoomOf(conn net.Conn) Room {
	of, _ := conn.(Roomy)
	return Room{of: of}
}

// Hold says how many bytes are held now.
func (r *Room) Hold(bytes int) error {
	more := bytes - r.held
	if r.of == nil || more == 0 {
		return nil
	}
	r.held = bytes
	return r.of.Room(more)
}
