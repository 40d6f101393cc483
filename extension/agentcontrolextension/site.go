// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/client"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/componentkit/sameorigin"
	"github.com/callbraid/callbraid/internal/componentkit/webpage"
)

// maxQuery bounds the queries of requests, in bytes.
const maxQuery = 1024

// site is the server's pages and API.
type site struct {
	*agentControl
	// looks has a place for each request for pages and lists that is served.
	looks chan struct{}
	kept  keptPages
}

// newSite returns the handler of the site at an address.
func newSite(x *agentControl, address net.Addr) http.Handler {
	s := &site{agentControl: x, looks: make(chan struct{}, x.config.Limits.MaxRequests)}
	guard := sameorigin.Guard{
		Address: address, Hosts: x.config.AllowedHosts, Steers: true,
		MaxQuery: maxQuery, MaxBody: int64(x.config.Limits.MaxRequestBytes),
		Refuse: func(w http.ResponseWriter, r *http.Request, status int, why string) {
			reason := badRequest
			if status == http.StatusForbidden {
				reason = forbidden
			}
			answerProblem(w, problemOf(reason, status, why))
		},
	}
	return guard.Handler(s.routes())
}

func (s *site) routes() *http.ServeMux {
	mux := http.NewServeMux()
	look := func(f http.HandlerFunc) http.Handler {
		return only(s.withRoom(f), http.MethodGet, http.MethodHead)
	}
	// An order needs no place until its body has arrived. Otherwise orders without a body would use
	// all places.
	order := func(f http.HandlerFunc) http.Handler { return only(f, http.MethodPost) }
	mux.Handle("/v1/agents", look(s.listAgents))
	mux.Handle("/v1/agents/{id}", look(s.getAgent))
	mux.Handle("/v1/agents/{id}/commands", order(s.orderAgent))
	mux.Handle("/v1/openapi.yaml", look(serveDocument))
	mux.Handle("/{$}", look(s.agentsPage))
	for path, file := range webpage.Routes {
		mux.Handle(path, look(file))
	}
	mux.Handle("/agents/{id}", look(s.agentPage))
	mux.Handle("/agents/{id}/commands", order(s.orderByForm))
	mux.Handle("/answers/to/{key}", look(s.answerPage))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answerProblem(w, problemOf(notFound, 0, fmt.Sprintf("nothing is served at %.200q; see /v1/openapi.yaml", r.URL.Path)))
	})
	return mux
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
