// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/agentcontrol/api"
)

func TestAResponseIsCheckedAgainstTheDocument(t *testing.T) {
	transport := NewTransport(t, api.Document, "/v1/", nil)
	assert.ElementsMatch(t, []string{"/v1/agents", "/v1/agents/{id}", "/v1/agents/{id}/commands", "/v1/openapi.yaml"}, transport.document.Paths.InMatchingOrder())
	const problem = `{"type":"https://example.com/#not_found","title":"Not found","status":404,"detail":"no such path","reason":"not_found"}`
	for _, c := range []struct {
		name, path, body string
		status           int
		conforms         bool
	}{
		{"a list without agents", "/v1/agents", `{"allow_disruptive":false,"agents":[]}`, http.StatusOK, true},
		{"a list whose agent lacks its fields", "/v1/agents", `{"agents":[{"id":"x"}]}`, http.StatusOK, false},
		{"a status that the document lacks", "/v1/agents", `{"agents":[]}`, http.StatusTeapot, false},
		{"a problem at an unknown path", "/v1/elsewhere", problem, http.StatusNotFound, true},
		{"no problem at an unknown path", "/v1/elsewhere", `{}`, http.StatusNotFound, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := http.NewRequest(http.MethodGet, "http://localhost"+c.path, http.NoBody)
			assert.NoError(t, err)
			response := &http.Response{StatusCode: c.status, Header: http.Header{"Content-Type": {"application/json"}}}
			err = transport.check(r, response, []byte(c.body))
			assert.Equal(t, c.conforms, err == nil, "%v", err)
		})
	}
}
