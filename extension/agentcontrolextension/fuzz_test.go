// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/agentcontrol/api"
)

// FuzzOrder sends any body of any type to the API and the form. The agent only gets commands that
// it has, with arguments that the command allows, and no disruptive one. The answer is JSON, or a
// problem with the status of the response.
func FuzzOrder(f *testing.F) {
	for _, body := range []string{
		`{"command":"suspend"}`, `{"command":"stop"}`, `{"command":"enable","arguments":{"logger":"a","level":"FINE","limit":"7","all":"true"}}`,
		`{"command":"enable","arguments":{"logger":"a","limit":9}}`, `{"command":"enable","arguments":{"logger":"a","limit":11}}`,
		strings.Repeat(`[`, 20_000), `{"command":` + strings.Repeat(`{"a":`, 20_000), `{"command":"suspend"}{}`, `{"command":"suspend","x":1}`,
	} {
		f.Add("application/json", "/v1/agents/AGENT/commands", body)
	}
	f.Add("application/x-www-form-urlencoded", "/agents/AGENT/commands", "command=enable&argument.logger=a&argument.limit=3")
	f.Add("application/json; charset=latin1", "/v1/agents/%2e%2e/commands", `{}`)
	f.Fuzz(func(t *testing.T, contentType, path, body string) {
		b := unstartedBed(t)
		agent := newFake("one")
		var done []agentcontrol.Order
		agent.do = func(_ context.Context, o agentcontrol.Order) (agentcontrol.Answer, error) {
			done = append(done, o)
			return agentcontrol.Answer{Message: "done"}, nil
		}
		defer b.extension.Register(agent)()
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.URL.Path = strings.ReplaceAll(path, "AGENT", agent.id)
		r.Host = "localhost"
		r.Header.Set("Content-Type", contentType)
		w := httptest.NewRecorder()
		newSite(b.extension, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8766}).ServeHTTP(w, r)
		for _, o := range done {
			command, err := agentcontrol.Find(fakeCommands, o.Command)
			require.NoError(t, err)
			require.Empty(t, command.Disruption(o.Arguments), "nothing disrupts without allow_disruptive")
		}
		if w.Header().Get("Content-Type") == api.TypeProblem {
			var p api.Problem
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p))
			require.Equal(t, w.Code, p.Status)
			require.Empty(t, done)
		}
	})
}
