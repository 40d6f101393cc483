// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"fmt"
	"net"
	"net/http"

	"github.com/callbraid/callbraid/internal/componentkit/sameorigin"
	"github.com/callbraid/callbraid/internal/componentkit/webpage"
)

// maxQuery bounds the queries of requests, in bytes.
const maxQuery = 1024

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

// schemes are the HTTP authentication schemes of known authenticators.
var schemes = map[string]string{"basicauth": "Basic", "bearertokenauth": "Bearer"}

// answerBefore answers a request that fails before it reaches the site: the client is not
// authenticated, or the body can't be unpacked.
func (x *agentControl) answerBefore(w http.ResponseWriter, _ *http.Request, why string, status int) {
	sameorigin.SetHeaders(w.Header())
	reason := badRequest
	if status == http.StatusUnauthorized {
		reason = unauthorized
		if scheme := schemes[x.config.Auth.Get().Config.AuthenticatorID.Type().String()]; scheme != "" {
			w.Header().Set("WWW-Authenticate", scheme+` realm="agent_control"`)
		}
	}
	answerProblem(w, problemOf(reason, status, why))
}
