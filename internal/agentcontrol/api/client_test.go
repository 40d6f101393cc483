// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnAnswerHasAnEnd(t *testing.T) {
	const text = `{"agents":[{"id":"3f2a"}]}`
	var list AgentList
	require.NoError(t, decode(strings.NewReader(text), &list, int64(len(text))))
	assert.Equal(t, "3f2a", list.Agents[0].ID)
	assert.EqualError(t, decode(strings.NewReader(text), &list, int64(len(text)-1)), "expected at most 25 bytes, got more")
	assert.ErrorContains(t, decode(strings.NewReader(text[:9]), &list, 100), "unexpected EOF", "it is too short")
}

// The client reads a response only until it knows that it is no answer.
func TestAForeignResponseIsNotReadToItsEnd(t *testing.T) {
	for _, mediaType := range []string{TypeJSON, TypeProblem, "text/plain"} {
		written := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", mediaType)
			for block := make([]byte, 1<<20); ; {
				n, err := w.Write(block)
				if written += n; err != nil {
					return // the client has disconnected
				}
			}
		}))
		client := &Client{Endpoint: server.URL, HTTP: http.DefaultClient}
		_, err := client.Agents(t.Context())
		server.Close()
		assert.ErrorContains(t, err, `\x00`)
		assert.Less(t, written, 64<<20, "the buffers between them alone")
	}
}
