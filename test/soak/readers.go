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

// readers request pages from servers of the collector, and read a byte a second.
type readers struct {
	// asked is the number of requests, and cut the number that the server disconnected.
	asked, cut atomic.Int64
}

// read requests a page again and again until ctx ends. Each request ends after a while.
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

// crawl requests a page and reads a byte a second. The end of ctx is no error.
func (r *readers) crawl(ctx context.Context, address, path string) error {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil // the collector is not ready yet
	}
	defer connection.Close()
	stop := context.AfterFunc(ctx, func() { connection.Close() })
	defer stop()
	// A small buffer lets the server notice soon that the client does not read.
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
