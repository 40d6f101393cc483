// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/agentcontrol/api"
)

// Reasons of problems that are none of agents.
const (
	notFound   agentcontrol.Reason = "not_found"
	badRequest agentcontrol.Reason = "bad_request"
	forbidden  agentcontrol.Reason = "forbidden"
	// unauthorized is by authenticators.
	unauthorized agentcontrol.Reason = "unauthorized"
)

// problem is the status and the title of a reason.
type problem struct {
	status int
	title  string
}

var problems = map[agentcontrol.Reason]problem{
	notFound:                    {http.StatusNotFound, "Not found"},
	badRequest:                  {http.StatusBadRequest, "The request cannot be read"},
	forbidden:                   {http.StatusForbidden, "The request is from another site"},
	unauthorized:                {http.StatusUnauthorized, "The client is not authenticated"},
	agentcontrol.UnknownCommand: {http.StatusUnprocessableEntity, "The agent does not have the command"},
	agentcontrol.BadArgument:    {http.StatusUnprocessableEntity, "An argument is wrong"},
	agentcontrol.NotAllowed:     {http.StatusForbidden, "The command is not allowed"},
	agentcontrol.Busy:           {http.StatusServiceUnavailable, "Too many requests wait"},
	agentcontrol.NotNow:         {http.StatusConflict, "The agent's state forbids the command"},
	agentcontrol.Refused:        {http.StatusConflict, "The agent refused"},
	agentcontrol.Lost:           {http.StatusBadGateway, "The agent has disconnected"},
	agentcontrol.NoAnswer:       {http.StatusGatewayTimeout, "The result is not known"},
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
	setRetryAfter(w, p)
	answer(w, p.Status, api.TypeProblem, p)
}

// setRetryAfter adds the time after which the client may try again, if the server is busy.
func setRetryAfter(w http.ResponseWriter, p api.Problem) {
	if p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
}

// answer answers with a value.
func answer(w http.ResponseWriter, status int, mediaType string, value any) {
	w.Header().Set("Content-Type", mediaType)
	w.WriteHeader(status)
	_ = encoderTo(w).Encode(value) // the client is gone, or too slow
}

// encoderTo returns an encoder that does not escape HTML: no browser reads JSON as a page.
func encoderTo(w io.Writer) *json.Encoder {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder
}
