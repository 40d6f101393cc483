// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/componentkit/socket"
	"github.com/callbraid/callbraid/internal/testkit"
)

// script is a listener that has an error for each Accept, and then a connection.
type script struct {
	net.Listener
	errs []error
}

func (s *script) Accept() (net.Conn, error) {
	if len(s.errs) == 0 {
		return from("10.0.0.9"), nil
	}
	err := s.errs[0]
	s.errs = s.errs[1:]
	return nil, err
}

func TestAListenerWithTooManyOpenFiles(t *testing.T) {
	noFiles := func(e syscall.Errno) error { return fmt.Errorf("accept: %w", os.NewSyscallError("accept4", e)) }
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		silent  int
		errs    []error
		want    error
		evicted int
	}{
		"closes a silent connection and tries again": {2, []error{noFiles(syscall.EMFILE)}, nil, 1},
		"does so when the system has too many":       {2, []error{noFiles(syscall.ENFILE)}, nil, 1},
		"does so until it can accept":                {2, []error{noFiles(syscall.EMFILE), noFiles(syscall.EMFILE)}, nil, 2},
		"fails where no connection is silent":        {1, []error{noFiles(syscall.EMFILE), noFiles(syscall.EMFILE)}, syscall.EMFILE, 1},
		"closes none for another error":              {1, []error{broken}, broken, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(Options{Max: 10})
			for range c.silent {
				b.admit(t, from("10.0.0.1"))
			}
			_, err := b.Listen(&script{errs: c.errs}).Accept()
			assert.ErrorIs(t, err, c.want)
			assert.Equal(t, c.evicted, b.closed[NoFiles])
		})
	}
}

func TestTooFewOpenFilesAreLoggedOnce(t *testing.T) {
	if _, known := socket.MaxOpenFiles(); !known {
		t.Skip("the system does not say how many files can be open")
	}
	core, said := observer.New(zap.WarnLevel)
	WarnIfShort(zap.New(core), "limits.max_connections", 1)
	assert.Empty(t, said.All())
	WarnIfShort(zap.New(core), "limits.max_connections", math.MaxInt32)
	require.Len(t, said.All(), 1)
	assert.Equal(t, "limits.max_connections", said.All()[0].ContextMap()["setting"])
}

const patience = time.Minute

// served is a server with slots whose handler waits for release.
type served struct {
	t       *testing.T
	slots   *HTTP
	address string
	release chan struct{}
}

func serve(t *testing.T, max int) *served {
	below, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &served{t: t, address: below.Addr().String(), release: make(chan struct{})}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-s.release
		}
		_, _ = io.WriteString(w, "page")
	})}
	var listener net.Listener
	s.slots, listener = Serve(server, below, Options{Max: max, Setting: "max_connections"})
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		assert.NoError(t, server.Close())
		assert.ErrorIs(t, <-done, http.ErrServerClosed)
	})
	return s
}

// dial opens a connection and sends a text.
func (s *served) dial(text string) net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.address)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close() })
	require.NoError(s.t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, text)
	require.NoError(s.t, err)
	return conn
}

func (s *served) await(open, waiting int) {
	s.t.Helper()
	require.True(s.t, testkit.Happens(func() bool { return s.slots.Open() == open && s.slots.Waiting() == waiting }))
}

const request = "GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n"

func TestAConnectionWithARequestIsNotClosedForAnother(t *testing.T) {
	s := serve(t, 4) // two for one address
	asking := s.dial(request)
	s.await(1, 0)
	for range 5 {
		s.dial("")
	}
	s.await(2, 1)
	close(s.release)
	n, err := asking.Read(make([]byte, 1))
	assert.NoError(t, err)
	assert.Equal(t, 1, n)
	s.await(2, 2)
}

func TestANewConnectionIsClosedIfAllOthersHaveRequests(t *testing.T) {
	s := serve(t, 4)
	s.dial(request)
	s.dial(request)
	s.await(2, 0)
	_, err := s.dial("").Read(make([]byte, 1))
	require.Error(t, err)
	assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "it is closed")
	s.await(2, 0)
	close(s.release)
}
