// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// Client asks a server of the API.
type Client struct {
	// Endpoint is the address of the server, such as http://localhost:8766. A common prefix of all
	// paths may follow it.
	Endpoint string
	// HTTP sends requests.
	HTTP *http.Client
	// Token, if it is not empty, is sent as a bearer token.
	Token string
}

// maxAnswer bounds the answer of a server, in bytes.
const maxAnswer = 128 << 20

// maxText is how much is read of an answer that is none, in bytes.
const maxText = 200

// Error makes a problem an error.
func (p *Problem) Error() string { return p.Title + ": " + p.Detail }

// NoAnswer is a response of a server that does not serve the API, such as a proxy.
type NoAnswer struct {
	// Status is that of HTTP.
	Status int
	text   string
}

func (e *NoAnswer) Error() string { return e.text }

// Agents asks for all agents.
func (c *Client) Agents(ctx context.Context) (list AgentList, err error) {
	return list, c.ask(ctx, http.MethodGet, "/v1/agents", nil, &list)
}

// Agent asks for an agent.
func (c *Client) Agent(ctx context.Context, id string) (agent AgentDetail, err error) {
	return agent, c.ask(ctx, http.MethodGet, "/v1/agents/"+url.PathEscape(id), nil, &agent)
}

// Order sends an order to an agent, and waits for its answer. The error is a *Problem if the server
// describes it.
func (c *Client) Order(ctx context.Context, id string, order Order) (answer Answer, err error) {
	return answer, c.ask(ctx, http.MethodPost, "/v1/agents/"+url.PathEscape(id)+"/commands", order, &answer)
}

func (c *Client) ask(ctx context.Context, method, path string, body, answer any) error {
	var b []byte
	if body != nil {
		var err error
		if b, err = json.Marshal(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.Endpoint, "/")+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	if body != nil {
		r.Header.Set("Content-Type", TypeJSON)
	}
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	response, err := c.HTTP.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return read(response, answer)
}

// read reads an answer, or the problem that it is.
func read(response *http.Response, answer any) error {
	mediaType, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case mediaType == TypeProblem:
		p := &Problem{}
		if err := decode(response.Body, p, maxAnswer); err != nil {
			return fmt.Errorf("the server's problem: %w", err)
		}
		return p
	case response.StatusCode == http.StatusOK && mediaType == TypeJSON:
		if err := decode(response.Body, answer, maxAnswer); err != nil {
			return fmt.Errorf("the server's answer: %w", err)
		}
		return nil
	}
	begin, err := io.ReadAll(io.LimitReader(response.Body, maxText))
	if err != nil {
		return err
	}
	return &NoAnswer{Status: response.StatusCode, text: fmt.Sprintf("expected %s from agent_control, got %s, %q: %q", TypeJSON, response.Status, mediaType, begin)}
}

// decode reads a value of at most so many bytes, no further than its first mistake.
func decode(body io.Reader, value any, most int64) error {
	limited := &io.LimitedReader{R: body, N: most}
	err := json.NewDecoder(limited).Decode(value)
	if err != nil && limited.N <= 0 {
		return fmt.Errorf("expected at most %d bytes, got more", most)
	}
	return err
}
