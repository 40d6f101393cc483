// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package guard

import (
	"net"
	"syscall"
	"time"
)

// giveUpUnacknowledged does nothing: this system has no such setting. Waiting data and TCP itself show that the network
// is cut.
func giveUpUnacknowledged(time.Duration) func(network, address string, c syscall.RawConn) error {
	return nil
}

// rawWriter does not exist on this system. The goroutines of outlets write all data.
type rawWriter struct{}

func newRawWriter(net.Conn) *rawWriter { return nil }

func (*rawWriter) writeWithoutWait([]byte) int { return 0 }

func (*rawWriter) write([]byte) (int, error) { return 0, nil }
