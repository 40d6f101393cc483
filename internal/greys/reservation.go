// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greys

import "net"

// MemoryAccount is a connection whose memory is counted against a limit.
type MemoryAccount interface {
	// Reserve reserves more bytes for the connection, or releases bytes if more is negative. After an error
	// the connection has to be closed.
	Reserve(more int) error
}

// Reservation is the memory that one part of a client holds for a connection. Only one goroutine at a time may use it.
type Reservation struct {
	account MemoryAccount
	bytes   int
}

// ReservationOf returns an empty reservation for a connection. It has no limit if the connection is no [MemoryAccount].
func ReservationOf(conn net.Conn) Reservation {
	account, _ := conn.(MemoryAccount)
	return Reservation{account: account}
}

// Resize sets the number of reserved bytes.
func (r *Reservation) Resize(bytes int) error {
	more := bytes - r.bytes
	if r.account == nil || more == 0 {
		return nil
	}
	r.bytes = bytes
	return r.account.Reserve(more)
}
