// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
)

// controlBytes is the first size of the buffer of a control connection.
const controlBytes = 4 * kib

// maxConfiguration is the longest configuration that is accepted from a collector, in bytes.
const maxConfiguration = mib

// newReader returns a reader of messages up to a length.
func newReader(conn net.Conn, maxMessage int) *connreader.Reader {
	return connreader.New(conn, connreader.Settings{Buffer: controlBytes, MaxMessage: maxMessage})
}

// fromAgent decodes messages of an agent's control connection.
func fromAgent(b []byte) (bytefrog.Message, int, error) {
	return bytefrog.DecodeControl(b, bytefrog.MaxString)
}

// fromCollector returns a decoder of messages to agents of a version.
func fromCollector(version uint8) connreader.Decoder {
	return func(b []byte) (bytefrog.Message, int, error) {
		return bytefrog.DecodeCommand(b, version, maxConfiguration)
	}
}
