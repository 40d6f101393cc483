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
	"github.com/callbraid/callbraid/internal/sameorigin"
)

// maxQuery bounds the queries of requests, in bytes.
const maxQuery = 1024

// site is what is served.
type site struct {
	*agentControl
	// looks and commands are the requests that are served at once.
	looks, commands chan struct{}
}

// newSite is all that is served at an address.
func newSite(x *agentControl, address net.Addr) http.Handler {
	most := x.config.Limits.MaxRequests
	s := &site{agentControl: x, looks: make(chan struct{}, most), commands: make(chan struct{}, most)}
	guard := sameorigin.Guard{
		Address: address, Hosts: x.config.AllowedHosts,
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
	look := func(f http.HandlerFunc) http.Handler { return s.serving(s.looks, http.MethodGet, f) }
	order := func(f http.HandlerFunc) http.Handler { return s.serving(s.commands, http.MethodPost, f) }
	mux.Handle("/v1/agents", look(s.listAgents))
	mux.Handle("/v1/agents/{id}", look(s.getAgent))
	mux.Handle("/v1/agents/{id}/commands", order(s.orderAgent))
	mux.Handle("/v1/openapi.yaml", look(serveDocument))
	mux.Handle("/{$}", look(s.agentsPage))
	mux.Handle("/style.css", look(serveStyle))
	mux.Handle("/agents/{id}", look(s.agentPage))
	mux.Handle("/agents/{id}/commands", order(s.orderByForm))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answerProblem(w, problemOf(notFound, 0, fmt.Sprintf("nothing is served at %.200q; see /v1/openapi.yaml", r.URL.Path)))
	})
	return mux
}

// serving serves requests with a method, so many at once.
func (s *site) serving(room chan struct{}, method string, f http.HandlerFunc) http.Handler {
	methods := []string{method}
	if method == http.MethodGet {
		methods = append(methods, http.MethodHead)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(methods, r.Method) {
			w.Header().Set("Allow", strings.Join(methods, ", "))
			answerProblem(w, problemOf(badRequest, http.StatusMethodNotAllowed, fmt.Sprintf("expected %s, got %.20q", method, r.Method)))
			return
		}
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
			f(w, r)
		default:
			s.telemetry.busy()
			w.Header().Set("Retry-After", "1")
			answerProblem(w, problemOf(agentcontrol.Busy, 0, fmt.Sprintf("%d requests are being served already (limits.max_requests)", cap(room))))
		}
	})
}

// whoAsks is who somebody is, as far as it is known.
func whoAsks(r *http.Request) string {
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
