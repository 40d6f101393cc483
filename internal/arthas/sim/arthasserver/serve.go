// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasserver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

const (
	// headerTimeout limits the time until the header of a request has arrived.
	headerTimeout = 10 * time.Second
	// endTimeout limits the time until the last answers are sent.
	endTimeout = time.Second
)

// Serve serves until ctx ends or the listener fails. It closes the server, and waits for all its goroutines.
func (srv *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: srv, ReadHeaderTimeout: headerTimeout}
	served := make(chan error, 1)
	go func() {
		defer close(served)
		served <- server.Serve(listener)
	}()
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
	}
	srv.Close()
	ending, end := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer end()
	if server.Shutdown(ending) != nil {
		_ = server.Close() // a client reads too slowly, or not at all
	}
	srv.requestsOpen.Wait()
	for range served { // it may have begun after the shutdown
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
