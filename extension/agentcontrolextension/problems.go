// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"encoding/json"
	"net/http"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/agentcontrol/api"
)

// Reasons of problems that are none of agents.
const (
	notFound   agentcontrol.Reason = "not_found"
	badRequest agentcontrol.Reason = "bad_request"
	forbidden  agentcontrol.Reason = "forbidden"
)

// problem is what is said of a reason.
type problem struct {
	status int
	title  string
}

var problems = map[agentcontrol.Reason]problem{
	notFound:                    {http.StatusNotFound, "There is no such agent"},
	badRequest:                  {http.StatusBadRequest, "The request can't be understood"},
	forbidden:                   {http.StatusForbidden, "The request comes from elsewhere"},
	agentcontrol.UnknownCommand: {http.StatusUnprocessableEntity, "The agent doesn't have the command"},
	agentcontrol.BadArgument:    {http.StatusUnprocessableEntity, "An argument is wrong"},
	agentcontrol.NotAllowed:     {http.StatusForbidden, "The command is not allowed"},
	agentcontrol.Busy:           {http.StatusServiceUnavailable, "Too many wait"},
	agentcontrol.NotNow:         {http.StatusConflict, "The agent can't be told that now"},
	agentcontrol.Refused:        {http.StatusConflict, "The agent refused"},
	agentcontrol.Lost:           {http.StatusBadGateway, "The agent is gone"},
	agentcontrol.NoAnswer:       {http.StatusGatewayTimeout, "It is not known what came of it"},
}

// problemTypes is where problems are described, by their reasons.
const problemTypes = "https://github.com/callbraid/callbraid/blob/main/extension/agentcontrolextension/README.md#"

// problemOf is the problem of a reason. A status of 0 is that of the reason.
func problemOf(reason agentcontrol.Reason, status int, detail string) api.Problem {
	p := problems[reason]
	if status == 0 {
		status = p.status
	}
	return api.Problem{Type: problemTypes + string(reason), Title: p.title, Status: status, Detail: clip(detail, maxText), Reason: string(reason)}
}

// answerProblem answers with a problem.
func answerProblem(w http.ResponseWriter, p api.Problem) {
	answer(w, p.Status, api.TypeProblem, p)
}

// answer answers with a value.
func answer(w http.ResponseWriter, status int, mediaType string, value any) {
	b, err := json.Marshal(value)
	if err != nil { // there is no value that can't be said
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", mediaType)
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // whoever asked is gone, or too slow
}
