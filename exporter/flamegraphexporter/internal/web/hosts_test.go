// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/zap"
)

// These are the requests of a browser that another site led to this machine by a name of that site.
// For the browser, everything is of the same origin.
func TestAForeignNameOfThisServerReadsAndChangesNothing(t *testing.T) {
	p := playing("shop", "f")
	h := New(p, Options{Logger: zap.NewNop(), Address: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4040}})
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		for _, path := range []string{"/", "/reset", "/services/shop/profile.pb.gz", "/style.css"} {
			for host, allowed := range map[string]bool{"evil.example:4040": false, "localhost:4040": true} {
				r := httptest.NewRequest(method, "http://"+host+path, nil)
				r.Header.Set("Sec-Fetch-Site", "same-origin")
				r.Header.Set("Origin", "http://"+host)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				assert.Equal(t, allowed, w.Code != http.StatusForbidden, "%s %s%s", method, host, path)
			}
		}
	}
	assert.Equal(t, []string{"all of them"}, p.resets, "from here alone")
}
