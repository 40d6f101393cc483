// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"context"
	"errors"
	"net"
)

// Speaks is which protocol a server speaks.
type Speaks uint8

// What a server may speak.
const (
	SpeaksNeither Speaks = iota
	SpeaksGP
	SpeaksConsole
)

// Probe asks for the version, and says by what comes within Config.ProbeTimeout which
// protocol the server speaks. After an answer of GP, of whatever return code, the connection
// can be given to [NewClient]; a printable answer, or none, is the console, which wants a new
// connection. The error is ctx's, the network's, or a *ProtocolError.
func Probe(ctx context.Context, conn net.Conn, config Config) (Speaks, error) {
	return SpeaksNeither, errors.New("not there yet")
}
