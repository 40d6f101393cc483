// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// Far is an address in a network of its own, a namespace at the other end of a wire, that
// leads to one on loopback. The wire can be cut. Then packets are lost without an error.
type Far struct {
	// Address is host:port.
	Address string
	// name is the name of the namespace, and the others are those of the two ends of the wire.
	name, nearEnd, farEnd string
}

// networks is the number of networks that this process has made. The addresses of each are reserved for measuring networks.
var networks atomic.Int32

// NewFar makes an address that leads to another one. It ends with the test. Another process must not have one at the same time.
// If the machine cannot make it, the test is skipped, or fails if CALLBRAID_REQUIRE_PEERS is set.
func NewFar(t testing.TB, to string) *Far {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil || os.Geteuid() != 0 {
		const remedy = "expected to be root, and ip in PATH, to cut networks: apt-get install iproute2 (Debian)"
		if os.Getenv("CALLBRAID_REQUIRE_PEERS") != "" {
			t.Fatal(remedy)
		}
		t.Skip(remedy)
	}
	n := networks.Add(1)
	f := &Far{name: fmt.Sprintf("callbraid-%d-%d", os.Getpid(), n), nearEnd: fmt.Sprintf("callbraid-n%d", n), farEnd: fmt.Sprintf("callbraid-f%d", n)}
	nearAddress, farAddress := fmt.Sprintf("198.18.77.%d", 4*n+1), fmt.Sprintf("198.18.77.%d", 4*n+2)
	f.ip(t, "netns add "+f.name)
	t.Cleanup(func() { f.ip(t, "netns del "+f.name) })
	f.ip(t, "link add "+f.nearEnd+" type veth peer name "+f.farEnd+" netns "+f.name)
	// With the namespace it would go too, but some time later.
	t.Cleanup(func() { f.ip(t, "link del "+f.nearEnd) })
	f.ip(t, "addr add "+nearAddress+"/30 dev "+f.nearEnd)
	f.ip(t, "link set "+f.nearEnd+" up")
	f.ip(t, "-n "+f.name+" addr add "+farAddress+"/30 dev "+f.farEnd)
	f.Heal(t)
	listener := f.listen(t, farAddress)
	f.Address = listener.Addr().String()
	lead(t, listener, to)
	return f
}

// Cut cuts the wire.
func (f *Far) Cut(t testing.TB) { f.ip(t, "-n "+f.name+" link set "+f.farEnd+" down") }

// Heal mends it.
func (f *Far) Heal(t testing.TB) { f.ip(t, "-n "+f.name+" link set "+f.farEnd+" up") }

func (f *Far) ip(t testing.TB, arguments string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(arguments)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", arguments, err, out)
	}
}

// listen listens at an address in the namespace. A socket stays where it was made.
func (f *Far) listen(t testing.TB, address string) (listener net.Listener) {
	t.Helper()
	failed := make(chan error)
	go func() {
		// The thread ends with the goroutine, because it is not unlocked: it never leaves the
		// namespace.
		runtime.LockOSThread()
		space, err := os.Open(filepath.Join("/run/netns", f.name))
		if err == nil {
			defer space.Close()
			err = unix.Setns(int(space.Fd()), unix.CLONE_NEWNET)
		}
		if err == nil {
			listener, err = net.Listen("tcp", address+":0")
		}
		failed <- err
	}()
	if err := <-failed; err != nil {
		t.Fatalf("listen in the namespace: %v", err)
	}
	return listener
}

// lead forwards the connections of a listener to an address, until the test ends.
func lead(t testing.TB, listener net.Listener, to string) {
	var open sync.Map
	var copying sync.WaitGroup
	copying.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			conn, err := net.Dial("tcp", to)
			if err != nil {
				_ = from.Close()
				continue
			}
			open.Store(from, conn)
			copying.Go(func() { pour(conn, from) })
			copying.Go(func() { pour(from, conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		open.Range(func(from, conn any) bool {
			_ = from.(net.Conn).Close()
			_ = conn.(net.Conn).Close()
			return true
		})
		copying.Wait()
	})
}

// pour copies one direction to its end, and closes that direction.
func pour(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		_ = to.Close()
		return
	}
	_ = to.(*net.TCPConn).CloseWrite()
}
