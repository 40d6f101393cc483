// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"bufio"
	"fmt"
	"net/http"

	"github.com/callbraid/callbraid/internal/agentcontrol/api"
)

// listAgents answers with all agents, an api.AgentList. It writes one after the other, because the
// text of all would be in memory while a slow client reads it.
func (s *site) listAgents(w http.ResponseWriter, _ *http.Request) {
	all := s.sorted()
	w.Header().Set("Content-Type", api.TypeJSON)
	// A failed write means that the client is gone, or too slow.
	out := bufio.NewWriter(w)
	encoder := encoderTo(out)
	fmt.Fprintf(out, `{"allow_disruptive":%t,"agents":[`, s.config.AllowDisruptive)
	for i, e := range all {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		now := e.show()
		if encoder.Encode(agentOf(&now, maxListed)) != nil {
			return
		}
	}
	_, _ = out.WriteString("]}\n")
	_ = out.Flush()
}
