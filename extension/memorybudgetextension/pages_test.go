// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package memorybudgetextension

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/extension/memorybudgetextension/internal/metadata"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/testkit"
)

// pageServer is a server of pages behind the middleware.
type pageServer struct {
	*httptest.Server
	requests *requests
	pages    *pages
	logs     *observer.ObservedLogs
	// made is the number of pages that the handler has begun.
	made atomic.Int64
	// handler makes a page.
	handler http.HandlerFunc
}

func servePages(t *testing.T, change func(*RequestsConfig), handler http.HandlerFunc) *pageServer {
	t.Helper()
	core, logs := observer.New(zap.WarnLevel)
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	builder, err := metadata.NewTelemetryBuilder(telemetry.NewTelemetrySettings())
	require.NoError(t, err)
	config := createDefaultConfig().(*Config).Requests
	if change != nil {
		change(&config)
	}
	b := budget.New(1 << 30)
	t.Cleanup(b.Stop)
	s := &pageServer{requests: newRequests(config, zap.New(core), builder, b), logs: logs, handler: handler}
	middleware := newHTTPServer(s.requests, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.made.Add(1)
		s.handler(w, r)
	}))
	s.pages = &middleware.pages
	s.Server = httptest.NewServer(middleware)
	t.Cleanup(s.Close)
	return s
}

// awaitUsers waits until this number of requests use the pages that are being made.
func (s *pageServer) awaitUsers(t *testing.T, n int) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("%d requests share pages", n), func() (bool, string) {
		s.pages.mu.Lock()
		defer s.pages.mu.Unlock()
		users := 0
		for _, p := range s.pages.made {
			users += p.users
		}
		return users == n, fmt.Sprint(users)
	})
}

// get requests a page and returns its status and body.
func (s *pageServer) get(t *testing.T, path string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response, string(body)
}

func TestClientsThatAskAtTheSameTimeShareAPage(t *testing.T) {
	begun, goOn := make(chan bool), make(chan bool)
	s := servePages(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		begun <- true
		<-goOn
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = fmt.Fprint(w, "calls 7")
	})
	const clients = 20
	bodies := make([]string, clients)
	var done sync.WaitGroup
	ask := func(i int) {
		response, body := s.get(t, "/metrics")
		assert.Equal(t, "text/plain; version=0.0.4", response.Header.Get("Content-Type"))
		bodies[i] = body
	}
	done.Go(func() { ask(0) })
	<-begun
	for i := 1; i < clients; i++ {
		done.Go(func() { ask(i) })
	}
	s.awaitUsers(t, clients)
	goOn <- true
	done.Wait()
	for _, body := range bodies {
		assert.Equal(t, "calls 7", body)
	}
	assert.EqualValues(t, 1, s.made.Load())

	// A later request gets a new page.
	done.Go(func() { ask(0) })
	<-begun
	goOn <- true
	done.Wait()
	assert.EqualValues(t, 2, s.made.Load())
	s.awaitRelease(t)
}

// awaitRelease waits until no request holds memory.
func (s *pageServer) awaitRelease(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, "the memory of the pages is released", func() (bool, string) {
		held := s.requests.account.Used()
		return held == 0, fmt.Sprint(held)
	})
}

func TestDifferentPagesAreNotShared(t *testing.T) {
	begun, goOn := make(chan bool), make(chan bool)
	s := servePages(t, nil, func(w http.ResponseWriter, r *http.Request) {
		begun <- true
		<-goOn
		_, _ = fmt.Fprint(w, r.Header.Get("Accept"), r.Header.Get("Authorization"), r.RequestURI)
	})
	var done sync.WaitGroup
	for _, c := range [][]string{{"/metrics"}, {"/metrics?a=b"}, {"/metrics", "Accept", "text/plain"}, {"/metrics", "Authorization", "Basic eDp5"}} {
		done.Go(func() {
			_, body := s.get(t, c[0], c[1:]...)
			want := c[0]
			if len(c) > 1 {
				want = c[2] + c[0]
			}
			assert.Equal(t, want, body)
		})
		<-begun
	}
	close(goOn)
	done.Wait()
}

func TestAPageWithoutMemoryIsRefused(t *testing.T) {
	s := servePages(t, func(c *RequestsConfig) { c.LimitMiB = leastMiB }, func(w http.ResponseWriter, _ *http.Request) {
		piece := bytes.Repeat([]byte("x"), mib)
		for range 2 * leastMiB {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	})
	response, body := s.get(t, "/metrics")
	assert.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	assert.Equal(t, "1", response.Header.Get("Retry-After"))
	assert.Contains(t, body, "requests.limit_mib of memory_budget")
	assert.Equal(t, 1, s.logs.FilterMessage("Page refused").Len())
	s.awaitRelease(t)
}

func TestAStatusAndAnEmptyPageAreForwarded(t *testing.T) {
	s := servePages(t, nil, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	response, body := s.get(t, "/other")
	assert.Equal(t, http.StatusNotFound, response.StatusCode)
	assert.Empty(t, body)
	s.handler = func(http.ResponseWriter, *http.Request) {}
	response, _ = s.get(t, "/metrics")
	assert.Equal(t, http.StatusOK, response.StatusCode)
	head, err := http.Head(s.URL + "/metrics")
	require.NoError(t, err)
	require.NoError(t, head.Body.Close())
	assert.Equal(t, http.StatusOK, head.StatusCode)
}

func TestAPanicOfTheMakerIsAnErrorForTheOthers(t *testing.T) {
	begun, goOn := make(chan bool), make(chan bool)
	s := servePages(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, "a part")
		begun <- true
		<-goOn
		panic(http.ErrAbortHandler)
	})
	var done sync.WaitGroup
	done.Go(func() {
		_, err := http.Get(s.URL + "/metrics")
		assert.Error(t, err)
	})
	<-begun
	done.Go(func() {
		response, _ := s.get(t, "/metrics")
		assert.Equal(t, http.StatusInternalServerError, response.StatusCode)
	})
	s.awaitUsers(t, 2)
	goOn <- true
	done.Wait()
	s.awaitRelease(t)
}

func TestASlowReaderIsDisconnected(t *testing.T) {
	const size = 32 << 20 // more than the system keeps for a connection
	var s *pageServer
	held := make(chan int64, 1)
	s = servePages(t, func(c *RequestsConfig) { c.WriteTimeout = 200 * time.Millisecond }, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, size))
		held <- s.requests.account.Used()
	})
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	_, err = fmt.Fprint(c, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	assert.Greater(t, <-held, int64(size/2), "the memory of the page")
	s.awaitRelease(t) // before the client has read anything
	read, _ := io.Copy(io.Discard, c)
	assert.Less(t, read, int64(size))
}
