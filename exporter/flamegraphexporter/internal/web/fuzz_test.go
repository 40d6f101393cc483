// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzRequest asks for any page with any query, or posts any form. The handler answers with a
// status of its own, repeats no part of the request as markup, and serves the next request.
func FuzzRequest(f *testing.F) {
	for _, target := range []string{
		"/", "/services/shop/", "/services/shop/ui/flamegraph", "/services/shop/ui/top?f=Main&i=Price&h=x&s=y&p=Main.*",
		"/services/shop/profile.folded?seconds=", "/services/shop/profile.pb.gz?f=(", "/services/shop/ui/flamegraph?si=calls&g=lines", "/services/shop/ui/flamegraph.json?q=(&at=1&width=5&sf=x",
		"/services/shop/?node=1&depth=-1", "/traces/01000000000000000000000000000000.speedscope.json", "/windows/1/", "/compare?before=services/shop/&after=services/shop/&by=call&at=1", "/services/%73hop/ui/peek?f=%28",
		"/services/shop/at/2026-11-22T06Z/", "/services/shop/at/2026-11-22Z/profile.folded", "/services/shop/at/today/", "/compare?before=services/shop/at/2026-11-22T06Z/&after=services/shop/",
	} {
		f.Add(target, "")
	}
	f.Add("/windows", "service=shop&seconds=0")
	f.Add("/reset", "service=shop")
	f.Add("/reset", strings.Repeat("a=", 10_000))
	const markup = "<i>fuzz"
	f.Add("/services/shop/ui/top?f="+markup, "")
	f.Add("/"+markup, "service="+markup)
	h := serveStored(playing("shop", "f"))
	f.Fuzz(func(t *testing.T, target, form string) {
		// A form chooses the length of a window.
		if strings.Contains(target+form, "seconds") && form != "service=shop&seconds=0" {
			return
		}
		path, query, _ := strings.Cut(target, "?")
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if form != "" {
			r = httptest.NewRequest(http.MethodPost, "/", strings.NewReader(form))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		r.URL.Path, r.URL.RawQuery = path, query
		w := httptest.NewRecorder()
		h.ServeHTTP(connection{w}, r)
		require.GreaterOrEqual(t, w.Code, 200)
		require.NotContains(t, []int{http.StatusInternalServerError, http.StatusBadGateway}, w.Code, "%.500s", w.Body)
		if strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			require.NotContains(t, w.Body.String(), markup)
		}
		require.Equal(t, http.StatusOK, get(t, h, "/").Code)
	})
}
