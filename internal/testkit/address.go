// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
)

// Ports that systems do not assign to clients, so that no client gets one between its choice and its use.
const firstPort, lastPort = 20_000, 32_000

var ports struct {
	sync.Mutex
	next int
}

// Address returns a loopback address with a free port, another one at each call.
func Address(t testing.TB) string {
	t.Helper()
	ports.Lock()
	defer ports.Unlock()
	if ports.next == 0 {
		// Simultaneous test processes begin at different ports.
		ports.next = firstPort + os.Getpid()*64%(lastPort-firstPort)
	}
	for range lastPort - firstPort {
		address := fmt.Sprintf("127.0.0.1:%d", ports.next)
		if ports.next++; ports.next == lastPort {
			ports.next = firstPort
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatalf("close the listener that tried %s: %v", address, err)
		}
		return address
	}
	t.Fatalf("expected a free port from %d to %d, got none", firstPort, lastPort)
	return ""
}
