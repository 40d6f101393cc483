// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package sameorigin

import (
	"fmt"
	"net"
	"net/http"
)

// Guard checks requests before a handler.
type Guard struct {
	// Address is the address of the listener. Hosts are its allowed names, beside localhost and its addresses. Without
	// Hosts, a listener on a loopback address has no other name, and other listeners may have any name.
	Address net.Addr
	Hosts   []string
	// Steers: requests can do harm. Then requests other than GET and HEAD need an allowed name or the machine's name,
	// on every listener.
	Steers bool
	// MaxQuery and MaxBody bound requests, in bytes.
	MaxQuery int
	MaxBody  int64
	// Refuse answers a request that is refused.
	Refuse func(w http.ResponseWriter, r *http.Request, status int, why string)
}

// policy lets pages load only the style sheets, images and forms of this server.
const policy = "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// AllowOwnScripts lets a page also load scripts of this server, which may send requests to it. Scripts inside of pages stay
// forbidden.
func AllowOwnScripts(h http.Header) {
	h.Set("Content-Security-Policy", policy+"; script-src 'self'; connect-src 'self'")
}

// Handler returns a handler that checks requests, and passes the allowed ones to next.
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
	g.Refuse(w, r, http.StatusForbidden, "expected a request from a page of this server, got one from a page of another site")
}

// IsOfOtherSite reports whether a browser sends the request for a page of another site. The page cannot read the
// response, but each request costs time.
func IsOfOtherSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	return true
}

// isFollowedLink reports whether a person followed a link in a window. Frames, and windows that a page opens, are not
// followed links.
func isFollowedLink(r *http.Request) bool {
	h := r.Header
	return r.Method == http.MethodGet && h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document" && h.Get("Sec-Fetch-User") == "?1"
}

// SetHeaders sets the headers that restrict browsers. They may not guess the type of the response, show it in a frame,
// share it with another site, or store it. The Guard calls it; handlers without a Guard must call it.
func SetHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// With no-referrer, browsers would also hide the origin of a form, and the guard would refuse it.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}
