// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
)

// Bounds of requests, in bytes.
const (
	maxQuery = 8 << 10
	maxForm  = 64 << 10
)

// policy lets pages have our style and nothing else.
const policy = "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// guarded is the handler behind what holds for all requests.
func guarded(next http.Handler) http.Handler {
	limited := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		if len(r.URL.RawQuery) > maxQuery {
			http.Error(w, "the query is too long", http.StatusRequestURITooLong)
			return
		}
		if isOfOtherSite(r) && !isFollowedLink(r) {
			answerText(w, errOtherSite.Error(), http.StatusForbidden)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		next.ServeHTTP(w, r)
	})
	return http.NewCrossOriginProtection().Handler(limited)
}

// isOfOtherSite says whether a page of another site lets a browser ask. It cannot read the
// answer, but each costs time.
func isOfOtherSite(r *http.Request) bool {
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
	return h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document" && h.Get("Sec-Fetch-User") == "?1"
}

// setHeaders says what browsers may do with a response: not guess its type, show it in
// no frame, give it to no other site, keep it nowhere.
func setHeaders(h http.Header) {
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
