// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package hq

import (
	"fmt"
	"io"
	"net"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// writeTimeout is how long a peer has to read a message: agents read their control connection
// all the time.
const writeTimeout = time.Second

// Write sends a message. The error names the message.
func Write(conn net.Conn, m bytefrog.Message) error {
	if err := conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := conn.Write(m.AppendTo(nil)); err != nil {
		return fmt.Errorf("sending %v: %w", m.Type(), err)
	}
	return nil
}

// refuseTimeout is how long a refused peer has to read the reason, and refuseBytes bounds the discarded data.
const (
	refuseTimeout = time.Second
	refuseBytes   = 64 << 10
)

// Refuse sends a peer the reason of its refusal. Then it reads the peer's data for a moment, because an earlier close
// would destroy the text on its way. The caller closes the connection.
func Refuse(conn net.Conn, text string) {
	if Write(conn, bytefrog.ErrorMessage{Text: text}) != nil {
		return
	}
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || conn.SetReadDeadline(time.Now().Add(refuseTimeout)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, conn, refuseBytes)
}
