// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pprofpages

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"

	"github.com/google/pprof/profile"
)

// The pages that there are.
const (
	FlameGraph = "flamegraph"
	Top        = "top"
	Peek       = "peek"
)

// Page is what the driver answers.
type Page struct {
	// Status is that of HTTP. Unless it is 200, Body is a text that says what is wrong
	// with the query.
	Status int
	Body   []byte
	// Nonce is that of all scripts and styles of the page, for its security policy.
	Nonce string
}

// Render gives a page of a profile, by the query of its address. The profile is the
// driver's then.
//
// Pages are rendered one after the other, whoever asks: the driver's state is the
// process's. The context is looked at before.
func Render(ctx context.Context, name string, query url.Values, p *profile.Profile) (Page, error) {
	driverState.Lock()
	defer driverState.Unlock()
	if err := ctx.Err(); err != nil {
		return Page{}, err
	}
	handlers, err := handlersOf(p)
	if err != nil {
		return Page{}, err
	}
	handler, ok := handlers["/"+name]
	if !ok {
		return Page{}, fmt.Errorf("pprof: expected it to have the page %s, it hasn't", name)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "/"+name+"?"+query.Encode(), nil)
	if err != nil {
		return Page{}, err
	}
	answer := answer{header: http.Header{}, status: http.StatusOK}
	handler.ServeHTTP(&answer, request)
	if answer.status != http.StatusOK {
		return Page{Status: answer.status, Body: answer.body.Bytes()}, nil
	}
	nonce := rand.Text()
	return Page{Status: http.StatusOK, Body: adapt(answer.body.Bytes(), nonce), Nonce: nonce}, nil
}

// answer is what a handler of the driver says.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) { a.status = status }

func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }
