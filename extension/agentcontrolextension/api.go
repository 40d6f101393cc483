// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/agentcontrol/api"
)

func serveDocument(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(api.Document) // the client is gone, or too slow
}

// named is the agent that a request is about; nil: there is none.
func (s *site) named(r *http.Request) (*entry, api.Problem) {
	id := r.PathValue("id")
	if e := s.find(id); e != nil {
		return e, api.Problem{}
	}
	return nil, problemOf(notFound, 0, fmt.Sprintf("no agent has the ID %.100q; it has disconnected, or never existed", id))
}

func (s *site) getAgent(w http.ResponseWriter, r *http.Request) {
	e, missing := s.named(r)
	if e == nil {
		answerProblem(w, missing)
		return
	}
	now := e.show()
	answer(w, http.StatusOK, api.TypeJSON, detailOf(&now, maxText))
}

func (s *site) orderAgent(w http.ResponseWriter, r *http.Request) {
	e, missing := s.named(r)
	if e == nil {
		answerProblem(w, missing)
		return
	}
	wanted, status, err := readOrder(r)
	if err != nil {
		answerProblem(w, problemOf(badRequest, status, err.Error()))
		return
	}
	said, took, err := s.carryOut(r.Context(), e, wanted)
	if err != nil {
		answerProblem(w, problemOf(agentcontrol.ReasonOf(err), 0, err.Error()))
		return
	}
	answer(w, http.StatusOK, api.TypeJSON, answerOf(e, wanted.command, said, took, s.config.Limits.MaxItems))
}

// readOrder reads a client's order in JSON. A form cannot be sent as JSON, so no page of another
// site can send one.
func readOrder(r *http.Request) (w wish, status int, err error) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != api.TypeJSON {
		return wish{}, http.StatusUnsupportedMediaType, fmt.Errorf("expected the content type %s, got %.100q", api.TypeJSON, r.Header.Get("Content-Type"))
	}
	var order api.Order
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	decoder.UseNumber()
	if err := decoder.Decode(&order); err != nil {
		return wish{}, statusOf(err), fmt.Errorf("expected {\"command\": …, \"arguments\": {…}}: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return wish{}, http.StatusBadRequest, errors.New("expected nothing after the command, got more")
	}
	if order.Command == "" {
		return wish{}, http.StatusBadRequest, errors.New("expected a command, got none")
	}
	w = wish{command: order.Command, arguments: map[string]string{}, by: clientOf(r)}
	for name, value := range order.Arguments {
		if w.arguments[name], err = textOf(value); err != nil {
			return wish{}, http.StatusBadRequest, fmt.Errorf("argument %.100q: %w", name, err)
		}
	}
	return w, 0, nil
}

// statusOf is the status for a body that can't be read.
func statusOf(err error) int {
	if errors.As(err, new(*http.MaxBytesError)) {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}

// textOf is a value of JSON as it would be written by a person.
func textOf(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case json.Number:
		return v.String(), nil
	default:
		return "", fmt.Errorf("expected a text, a number, true or false, got %T", value)
	}
}
