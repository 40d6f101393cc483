// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// load is the messages of a benchmark.
type load struct {
	name           string
	messages, size int
}

// loads need about a second.
var loads = []load{
	{"1KiB", 1_000_000, 1 << 10},
	{"100KiB", 40_000, 100 << 10},
}

// BenchmarkReceive receives over loopback from a cheap sender, so it measures the receiver: here,
// and in a C program with libzmq, whose I/O has its own thread.
func BenchmarkReceive(b *testing.B) {
	for _, l := range loads {
		b.Run(l.name+"/callbraid", func(b *testing.B) { l.measure(b, l.receive) })
		b.Run(l.name+"/libzmq", func(b *testing.B) {
			program := compileReceiver(b)
			l.measure(b, func(ctx context.Context, address string) error {
				command := exec.CommandContext(ctx, program, "tcp://"+address, strconv.Itoa(l.messages), strconv.Itoa(l.size))
				command.Stderr = os.Stderr
				return command.Run()
			})
		})
	}
}

// measure has receive get the load once for each round. The time is from the subscription
// to the last message.
func (l load) measure(b *testing.B, receive func(ctx context.Context, address string) error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	var took time.Duration
	for b.Loop() {
		received := make(chan error, 1)
		go func() { received <- receive(b.Context(), listener.Addr().String()) }()
		conn, err := listener.Accept()
		if err != nil {
			b.Fatal(err)
		}
		began, err := l.feed(b.Context(), conn)
		if err == nil {
			err = <-received
		}
		took += time.Since(began)
		_ = conn.Close()
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(took.Nanoseconds())/float64(b.N*l.messages), "ns/message")
}

// feed sends the load, which is encoded before, to a subscriber, and returns the begin.
func (l load) feed(ctx context.Context, conn net.Conn) (began time.Time, err error) {
	t, err := accept(ctx, conn, Pub, Options{})
	if err != nil {
		return began, err
	}
	subscribed := errors.New("subscribed")
	t.other = func(command) error { return subscribed }
	if _, err := t.receive(); err != subscribed {
		return began, fmt.Errorf("expected a subscription, got %w", err)
	}
	const piece = 1 << 20
	together := max(piece/l.size, 1)
	messages := bytes.Repeat(AppendMessage(nil, make([]byte, l.size)), together)
	one := len(messages) / together
	began = time.Now()
	for left := l.messages; left > 0; left -= together {
		if _, err := conn.Write(messages[:min(left, together)*one]); err != nil {
			return began, err
		}
	}
	return began, nil
}

// receive is our own receiver.
func (l load) receive(ctx context.Context, address string) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	s, err := Subscribe(ctx, conn, Options{}, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	n := 0
	err = s.Receive(ctx, func(m Message) error {
		if len(m) != 1 || len(m[0]) != l.size {
			return fmt.Errorf("message %d: expected %d bytes, got %d parts, the first of %d", n, l.size, len(m), len(m[0]))
		}
		if n++; n == l.messages {
			return io.EOF
		}
		return nil
	})
	if err != io.EOF {
		return err
	}
	return nil
}

// compileReceiver compiles testdata/receive.c. The benchmark is skipped where libzmq
// can't be compiled with, or fails where CALLBRAID_REQUIRE_PEERS is set.
func compileReceiver(b *testing.B) (program string) {
	b.Helper()
	program = filepath.Join(b.TempDir(), "receive")
	output, err := exec.CommandContext(b.Context(), "gcc", "-O2", "-Wall", "-o", program, "testdata/receive.c", "-lzmq").CombinedOutput()
	if err == nil {
		return program
	}
	const remedy = "install gcc and libzmq (Debian: apt-get install gcc libc6-dev libzmq3-dev)"
	if os.Getenv("CALLBRAID_REQUIRE_PEERS") != "" {
		b.Fatalf("expected to compile with libzmq, since CALLBRAID_REQUIRE_PEERS is set; %s: %v\n%s", remedy, err, output)
	}
	b.Skipf("can't compile with libzmq: %s", remedy)
	return ""
}
