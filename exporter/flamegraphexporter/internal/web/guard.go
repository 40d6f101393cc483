// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"

	"github.com/callbraid/callbraid/internal/componentkit/sameorigin"
)

// Bounds of requests, in bytes.
const (
	maxQuery = 8 << 10
	maxForm  = 64 << 10
)

// guarded returns the handler with the checks of all requests.
func guarded(options *Options, next http.Handler) http.Handler {
	guard := sameorigin.Guard{
		Address: options.Address, Hosts: options.AllowedHosts, MaxQuery: maxQuery, MaxBody: maxForm,
		Refuse: func(w http.ResponseWriter, _ *http.Request, status int, why string) { answerText(w, why, status) },
	}
	return guard.Handler(next)
}
