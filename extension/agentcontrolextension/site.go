// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/client"

	"github.com/callbraid/callbraid/internal/agentcontrol"
)

// site is the server's pages and API.
type site struct {
	*agentControl
	// looks has a place for each request for pages and lists that is served.
	looks chan struct{}
	kept  keptPages
}

// only serves requests with one of some methods.
func only(f http.HandlerFunc, methods ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(methods, r.Method) {
			w.Header().Set("Allow", strings.Join(methods, ", "))
			answerProblem(w, problemOf(badRequest, http.StatusMethodNotAllowed, fmt.Sprintf("expected %s, got %.20q", methods[0], r.Method)))
			return
		}
		f(w, r)
	})
}

// withRoom bounds the number of concurrent requests.
func (s *site) withRoom(f http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.looks <- struct{}{}:
			defer func() { <-s.looks }()
			f(w, r)
		default:
			s.telemetry.busy()
			answerProblem(w, problemOf(agentcontrol.Busy, 0, fmt.Sprintf("the server already handles %d requests (limits.max_requests)", cap(s.looks))))
		}
	}
}

// clientOf describes the client of a request: its address, and its authenticated name if it has
// one.
func clientOf(r *http.Request) string {
	who := r.RemoteAddr
	if auth := client.FromContext(r.Context()).Auth; auth != nil {
		for _, name := range []string{"subject", "username"} {
			if text, ok := auth.GetAttribute(name).(string); ok && text != "" {
				return clip(text, maxText) + " at " + who
			}
		}
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return clip(r.TLS.PeerCertificates[0].Subject.String(), maxText) + " at " + who
	}
	return who
}
