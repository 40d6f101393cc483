// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import "slices"

// SocketType is the type of a socket in the metadata of the handshake (RFC 23, "The Socket-Type
// Property").
type SocketType string

// The types of sockets here, and the types of their peers.
const (
	Pub    SocketType = "PUB"
	Sub    SocketType = "SUB"
	Req    SocketType = "REQ"
	Rep    SocketType = "REP"
	XPub   SocketType = "XPUB"
	XSub   SocketType = "XSUB"
	Dealer SocketType = "DEALER"
	Router SocketType = "ROUTER"
)

// partners returns the types that a socket of this type may connect to.
func (s SocketType) partners() []SocketType {
	switch s {
	case Pub:
		return []SocketType{Sub, XSub}
	case Sub:
		return []SocketType{Pub, XPub}
	case Req:
		return []SocketType{Rep, Router}
	case Rep:
		return []SocketType{Req, Dealer}
	default:
		return nil
	}
}

// fits reports whether a socket of this type may connect to one of the other type.
func (s SocketType) fits(other SocketType) bool { return slices.Contains(s.partners(), other) }
