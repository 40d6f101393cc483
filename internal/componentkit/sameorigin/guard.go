// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package sameorigin

import (
	"fmt"
	"net"
	"net/http"
)

// Guard is what a handler stands behind.
type Guard struct {
	// Address is where the server listens, and Hosts what it may be called there beside
	// localhost and its addresses. Without any, that is nothing where it listens on a
	// loopback address, and else anything.
	Address net.Addr
	Hosts   []string
	// Steers says that requests can do harm. Those that are not GET or HEAD then need one of
	// those names, or this machine's, wherever the server listens.
	Steers bool
	// MaxQuery and MaxBody bound requests, in bytes.
	MaxQuery int
	MaxBody  int64
	// Refuse answers a request that is refused.
	Refuse func(w http.ResponseWriter, r *http.Request, status int, why string)
}

// policy lets pages have our style and nothing else.
const policy = "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Handler is the handler behind the guard.
func (g *Guard) Handler(next http.Handler) http.Handler {
	allowed := newHosts(g.Address, g.Hosts)
	limited := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, g.MaxBody)
		next.ServeHTTP(w, r)
	})
	crossOrigin := http.NewCrossOriginProtection()
	crossOrigin.SetDenyHandler(http.HandlerFunc(g.refuseOtherSite))
	protected := crossOrigin.Handler(limited)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		SetHeaders(w.Header())
		named := allowed.allow
		if g.Steers && r.Method != http.MethodGet && r.Method != http.MethodHead {
			named = allowed.allowToSteer
		}
		switch {
		case !named(r.Host):
			g.Refuse(w, r, http.StatusForbidden, fmt.Sprintf("expected a request to localhost or one of allowed_hosts, got one to %.100q", r.Host))
		case len(r.URL.RawQuery) > g.MaxQuery:
			g.Refuse(w, r, http.StatusRequestURITooLong, fmt.Sprintf("expected a query of at most %d bytes, got %d", g.MaxQuery, len(r.URL.RawQuery)))
		case IsOfOtherSite(r) && !isFollowedLink(r):
			g.refuseOtherSite(w, r)
		default:
			protected.ServeHTTP(w, r)
		}
	})
}

func (g *Guard) refuseOtherSite(w http.ResponseWriter, r *http.Request) {
	g.Refuse(w, r, http.StatusForbidden, "the request is of another site's page")
}

// IsOfOtherSite says whether a page of another site lets a browser ask. It could not read
// the answer, but each costs time.
func IsOfOtherSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	return true
}

// isFollowedLink reports whether a person followed a link, which then fills the window: frames
// and windows that pages open by themselves are none.
func isFollowedLink(r *http.Request) bool {
	h := r.Header
	return r.Method == http.MethodGet && h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document" && h.Get("Sec-Fetch-User") == "?1"
}

// SetHeaders says what browsers may do with a response: not guess its type, show it in
// no frame, give it to no other site, keep it nowhere. A handler behind the guard has them;
// what is answered before it needs them, too.
func SetHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// With no-referrer browsers hide where a form was sent from, too, and it would be
	// refused as another site's.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}
