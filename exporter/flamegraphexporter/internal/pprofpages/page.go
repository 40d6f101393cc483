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
	"os"

	"github.com/google/pprof/profile"
)

// The served pages.
const (
	Top  = "top"
	Peek = "peek"
)

// Page is an answer of the driver.
type Page struct {
	// Status is that of HTTP. If it is not 200, Body is a text with the reason.
	Status int
	Body   []byte
	// Nonce is that of all scripts and styles of the page, for its security policy.
	Nonce string
}

// noHome is the reason in a Page without the user's directory.
const noHome = "These pages need the environment variable HOME, because pprof looks for its settings there. " +
	"Set HOME for the collector to any directory."

// Render returns a page of a profile, by the query of its address. The driver owns the
// profile afterwards.
//
// It renders one page at a time, because the driver has state of its process. It returns the
// context's error if the context is done before that.
func Render(ctx context.Context, name string, query url.Values, p *profile.Profile) (Page, error) {
	driverState.Lock()
	defer driverState.Unlock()
	if err := ctx.Err(); err != nil {
		return Page{}, err
	}
	if _, err := os.UserConfigDir(); err != nil {
		return Page{Status: http.StatusServiceUnavailable, Body: []byte(noHome)}, nil
	}
	handlers, err := handlersOf(p)
	if err != nil {
		return Page{}, err
	}
	handler, ok := handlers["/"+name]
	if !ok {
		return Page{}, fmt.Errorf("pprof: expected a page %s, but there is none", name)
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

// answer is the answer of a handler of the driver.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) { a.status = status }

func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }
