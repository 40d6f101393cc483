// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package openapi checks the responses of an HTTP API against its OpenAPI document.
package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Transport is an http.RoundTripper that checks each response below Prefix against the document,
// and fails the test where they differ.
type Transport struct {
	// Next sends the requests.
	Next http.RoundTripper
	// Prefix is the path below which the document describes every response.
	Prefix string

	t        testing.TB
	document *openapi3.T
	router   routers.Router
}

// NewTransport reads and validates the document.
func NewTransport(t testing.TB, document []byte, prefix string, next http.RoundTripper) *Transport {
	t.Helper()
	d, err := openapi3.NewLoader().LoadFromData(document)
	require.NoError(t, err)
	require.NoError(t, d.Validate(context.Background()))
	router, err := legacy.NewRouter(d)
	require.NoError(t, err)
	return &Transport{Next: next, Prefix: prefix, t: t, document: d, router: router}
}

// RoundTrip sends a request and checks the response.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.Next.RoundTrip(r)
	if err != nil || !strings.HasPrefix(r.URL.Path, t.Prefix) {
		return response, err
	}
	body, err := io.ReadAll(response.Body)
	response.Body.Close() // all of it was read, or reading failed
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	assert.NoError(t.t, t.check(r, response, body), "%s %s answers %d %s", r.Method, r.URL, response.StatusCode, body)
	return response, nil
}

// check compares a response with the document. A path that the document lacks has a problem as
// its only possible response.
func (t *Transport) check(r *http.Request, response *http.Response, body []byte) error {
	asked := r.Clone(context.Background())
	asked.URL.Host, asked.URL.Scheme, asked.Host = "", "", ""
	route, parameters, err := t.router.FindRoute(asked)
	if err != nil {
		var value any
		if err := json.Unmarshal(body, &value); err != nil {
			return err
		}
		return t.document.Components.Schemas["Problem"].Value.VisitJSON(value)
	}
	return openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: asked, PathParams: parameters, Route: route},
		Status:                 response.StatusCode, Header: response.Header,
		Body:    io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
}
