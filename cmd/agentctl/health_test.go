// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHealthPrintsTheCollectorsResponse(t *testing.T) {
	for name, c := range map[string]struct {
		status    int
		body      string
		out, fail string
	}{
		"a healthy collector":              {200, `{"status":"Server available"}`, "{\"status\":\"Server available\"}\n", ""},
		"a collector that starts or ends":  {503, `{"status":"Server not available"}`, "", `expected status 200, got 503 Service Unavailable: {"status":"Server not available"}`},
		"another server than health_check": {404, "no", "", "expected status 200, got 404"},
		"a redirection is not followed":    {302, "", "", "expected status 200, got 302"},
		"only the beginning is printed":    {200, strings.Repeat("x", 5000), strings.Repeat("x", maxHealthBytes) + "\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer server.Close()
			out, err := run(t, "health", server.URL)
			if c.fail != "" {
				assert.ErrorContains(t, err, c.fail)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.out, out)
		})
	}
	_, err := run(t, "health", "localhost:13133")
	assert.ErrorContains(t, err, "expected http://host:port")
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	_, err = run(t, "health", server.URL)
	assert.ErrorContains(t, err, "connection refused")
}
