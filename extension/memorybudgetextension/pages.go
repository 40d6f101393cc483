// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package memorybudgetextension

import (
	"bytes"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// pages answers GET and HEAD requests, such as those for the page of a prometheus exporter. That exporter makes a page
// for each request, and keeps it until the client has read it. So many slow readers would use much memory. Here clients
// that ask for the same page at the same time share one.
//
//  1. The first request of a page makes it, and reserves memory for it as it grows.
//  2. Requests for the same page wait until it is made, and then use it, too.
//  3. Each client must read it within the write timeout.
//  4. The last one releases the memory.
type pages struct {
	*requests
	next    http.Handler
	timeout time.Duration

	mu sync.Mutex
	// made are the pages that are being made.
	made map[pageKey]*page
}

// pageKey identifies equal pages: the parts of a request on which an answer may depend.
type pageKey struct{ method, uri, accept, encoding, authorization, cookie string }

func keyOf(r *http.Request) pageKey {
	return pageKey{
		method: r.Method, uri: r.RequestURI, accept: r.Header.Get("Accept"), encoding: r.Header.Get("Accept-Encoding"),
		authorization: r.Header.Get("Authorization"), cookie: r.Header.Get("Cookie"),
	}
}

// page is the answer to one or more requests. Its maker writes it until complete is closed. Then it is constant.
type page struct {
	complete chan struct{}
	// isWhole is set if the handler returned. A panic can leave a part of a page.
	isWhole bool
	status  int
	header  http.Header
	body    bytes.Buffer
	refused *refusal
	// reserve reserves memory for more bytes of the body, and reserved has those that it reserved.
	reserve  func(int) (int, *refusal)
	reserved int
	// users is the number of requests that wait for the page or send it. pages.mu guards it.
	users int
}

func (s *pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p, isMaker := s.join(keyOf(r))
	defer s.leave(p)
	if isMaker {
		s.makePage(p, r)
	} else {
		select {
		case <-p.complete:
		case <-r.Context().Done():
			return
		}
	}
	s.send(w, r, p)
}

// join returns the page of a key, and whether the caller has to make it.
func (s *pages) join(key pageKey) (p *page, isMaker bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p = s.made[key]
	if isMaker = p == nil; isMaker {
		p = &page{complete: make(chan struct{}), header: http.Header{}, reserve: s.reserve}
		s.made[key] = p
	}
	p.users++
	return p, isMaker
}

// leave releases the page's memory if the request was its last user.
func (s *pages) leave(p *page) {
	s.mu.Lock()
	p.users--
	isLast := p.users == 0
	s.mu.Unlock()
	if isLast {
		s.account.Release(p.reserved)
	}
}

// makePage lets the handler write the page. Later requests make another one. If the handler panics, so does makePage,
// and the page is not whole.
func (s *pages) makePage(p *page, r *http.Request) {
	key := keyOf(r)
	defer func() {
		s.mu.Lock()
		delete(s.made, key)
		s.mu.Unlock()
		close(p.complete)
	}()
	s.next.ServeHTTP(p, r)
	p.WriteHeader(http.StatusOK)
	p.isWhole = true
}

// send answers a request with the page. The server removes the deadline after the answer.
func (s *pages) send(w http.ResponseWriter, r *http.Request, p *page) {
	// A connection without deadlines is a test's.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.timeout))
	switch {
	case p.refused != nil:
		s.report(r.Context(), p.refused, r.RemoteAddr, pageRefused)
		w.Header().Set("Retry-After", retryAfter)
		http.Error(w, p.refused.text, http.StatusServiceUnavailable)
		return
	case !p.isWhole:
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	maps.Copy(w.Header(), p.header)
	if r.Method != http.MethodHead {
		w.Header().Set("Content-Length", strconv.Itoa(p.body.Len()))
	}
	w.WriteHeader(p.status)
	// The client may have disconnected, or reads too slowly.
	_, _ = w.Write(p.body.Bytes())
}

// Header is a method of http.ResponseWriter, as the next two.
func (p *page) Header() http.Header { return p.header }

// WriteHeader sets the status once.
func (p *page) WriteHeader(status int) {
	if p.status == 0 {
		p.status = status
	}
}

// Write adds to the body. It fails if there is no memory.
func (p *page) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	if p.refused == nil {
		p.grow(len(b))
	}
	if p.refused != nil {
		return 0, p.refused.status().Err()
	}
	return p.body.Write(b)
}

// grow makes room for more bytes. Each further piece is as long as all before.
func (p *page) grow(more int) {
	if p.body.Available() >= more {
		return
	}
	piece := max(firstBytes, p.body.Cap(), more)
	reserved, refused := p.reserve(piece)
	if p.refused = refused; refused == nil {
		p.reserved += reserved
		p.body.Grow(piece)
	}
}
