// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/callbraid/callbraid/internal/call/treeformat"
)

// Errors of requests, beside those of package calltree.
var (
	errTooMany     = errors.New("too many requests at the same time: try again later")
	errGone        = errors.New("the window is no longer kept: collect another one")
	errOtherSite   = errors.New("a script, or a page of another site, sent this request: expected a followed link of this server, or a program")
	errNoTrace     = errors.New("no span of that trace is kept")
	errNoTraceFile = errors.New("there is no such trace file, or no longer")
	errMemory      = errors.New("the memory budget of the collector has no room for this page: try again later, or raise limit_mib of the extension memory_budget")
)

// badRequest is an error of the client.
type badRequest struct{ error }

func badRequestf(format string, values ...any) error {
	return badRequest{fmt.Errorf(format, values...)}
}

// notStored and damaged are errors of stored windows.
type (
	notStored struct{ error }
	damaged   struct{ error }
)

// answerText answers with a text that can have something of the query in it.
func answerText(w http.ResponseWriter, text string, status int) {
	http.Error(w, treeformat.Printable(text), status)
}
