// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// readers ask servers of the collector for something and read a byte of it a second.
type readers struct {
	// asked is how often, cut how often the server did not let them go on.
	asked, cut atomic.Int64
}

// read asks for a page again and again until ctx ends, and gives each time up after a while.
func (r *readers) read(ctx context.Context, address, path string) {
	const patience, pause = 2 * time.Minute, time.Second
	for ctx.Err() == nil {
		once, end := context.WithTimeout(ctx, patience)
		if err := r.crawl(once, address, path); err != nil && once.Err() == nil {
			r.cut.Add(1)
		}
		end()
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// crawl reads a page so. That it is not read to its end in time is no error.
func (r *readers) crawl(ctx context.Context, address, path string) error {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil // the server listens only when the collector is ready
	}
	defer connection.Close()
	stop := context.AfterFunc(ctx, func() { connection.Close() })
	defer stop()
	// Little is on its way, so that the server feels that nobody reads.
	if err := connection.(*net.TCPConn).SetReadBuffer(1 << 10); err != nil {
		return err
	}
	r.asked.Add(1)
	if _, err := fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path); err != nil {
		return err
	}
	for b := make([]byte, 1); ; {
		if _, err := connection.Read(b); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}
