// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package connreader

import (
	"errors"
	"fmt"
	"net"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// BadData reports where a peer sent bytes that the protocol does not allow.
type BadData struct {
	Peer          string
	Offset        int64 // from the first byte of the connection
	Expected, Got string
}

func (e *BadData) Error() string {
	return fmt.Sprintf("%s, byte %d: expected %s, got %s", e.Peer, e.Offset, e.Expected, e.Got)
}

// BadData returns the error of a decoder that read Bytes, with its position on the connection.
func (r *Reader) BadData(err error) *BadData { return BadDataAt(r.conn, r.offset, err) }

// BadDataAt returns the error of a decoder that read bytes from a position on a connection.
func BadDataAt(conn net.Conn, offset int64, err error) *BadData {
	bad := &BadData{Peer: conn.RemoteAddr().String(), Offset: offset, Expected: "a message", Got: err.Error()}
	var protocol *bytefrog.ProtocolError
	if errors.As(err, &protocol) {
		bad.Offset += int64(protocol.Offset)
		bad.Expected, bad.Got = protocol.Expected, protocol.Got
	}
	return bad
}
