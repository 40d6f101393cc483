// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package slots_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/slots"
)

// A listener with one slot. Its clients send hello, and get the answer ok. A silent connection loses the slot to another one.
// After the handshake a connection keeps it.
func Example() {
	from, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		panic(err)
	}
	bounded := slots.New(slots.Options{
		Max: 1, Setting: "limits.max_connections", Grace: -1, // a silent connection loses its slot immediately
		Closed: func(reason slots.Reason) { fmt.Println("closed:", reason) },
	})
	var serving sync.WaitGroup
	serve := func(conn net.Conn, slot *slots.Slot) {
		defer slot.Release()
		defer conn.Close()
		hello := make([]byte, 5)
		n, err := conn.Read(hello)
		if err == nil {
			slot.Sent()
			_, err = io.ReadFull(conn, hello[n:])
		}
		if err != nil {
			if !slot.Gone() { // else Closed has counted it
				fmt.Println("failed:", err)
			}
			return
		}
		if !slot.Establish() {
			return // a new connection got the slot
		}
		_, _ = conn.Write([]byte("ok"))
		_, _ = conn.Read(hello) // until the client closes
	}
	serving.Go(func() {
		slots.Accept(context.Background(), bounded.Listen(from), func(conn net.Conn) {
			slot, full := bounded.AdmitBeyond(conn)
			if full != nil {
				fmt.Println("refused:", full)
				_ = conn.Close()
				return
			}
			serving.Go(func() { serve(conn, slot) })
		}, func(err error, _ time.Duration) { fmt.Println("not accepted:", err) })
	})

	dial := func() net.Conn {
		conn, err := net.Dial("tcp", from.Addr().String())
		if err != nil {
			panic(err)
		}
		return conn
	}
	silent, honest := dial(), dial()
	_, _ = honest.Write([]byte("hello"))
	answer := make([]byte, 2)
	_, _ = io.ReadFull(honest, answer)
	fmt.Printf("answer: %s\n", answer)
	late := dial()
	_, _ = late.Read(answer) // until the listener closes it
	for _, conn := range []net.Conn{silent, honest, late} {
		_ = conn.Close()
	}
	_ = from.Close()
	serving.Wait()
	// Output:
	// closed: silent
	// answer: ok
	// refused: limits.max_connections is reached (1)
}
