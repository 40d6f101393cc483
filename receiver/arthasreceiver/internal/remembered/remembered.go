// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package remembered stores the open sessions of a server, and the classes that they instrumented: in memory, and in a
// storage extension if there is one. After a crash the next collector ends these sessions and restores the classes.
package remembered

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// Process identifies the process that the sessions are of.
type Process struct {
	PID     int64  `json:"pid"`
	Host    string `json:"host,omitempty"`
	Started string `json:"started,omitempty"`
}

// Classes are instrumented classes.
type Classes struct {
	Pattern string `json:"pattern"`
	Regexp  bool   `json:"regexp,omitempty"`
}

// Of returns the stored form of classes.
func Of(c javamethods.Classes) Classes { return Classes{c.Pattern.String(), c.Regexp} }

// Session is an open session with the classes that its command instruments.
type Session struct {
	ID      string  `json:"id"`
	Classes Classes `json:"classes"`
}

// State is everything that a server has to end and to restore.
type State struct {
	Process  Process   `json:"process"`
	Sessions []Session `json:"sessions,omitempty"`
	// Owed are classes that no session uses any more, and that need a reset.
	Owed []Classes `json:"owed,omitempty"`
}

// Store has the state of one server. Several goroutines may use it.
type Store struct {
	client storage.Client
	key    string
	// failed gets the errors of the extension.
	failed func(error)

	mu    sync.Mutex
	state State
}

// maxSessions bounds the sessions and classes that are read from the extension.
const maxSessions = 4096

// New returns the store of a server with the state that the last collector left. client may be nil.
func New(ctx context.Context, client storage.Client, server string, failed func(error)) (*Store, error) {
	s := &Store{client: client, key: "server." + server, failed: failed}
	if client == nil {
		return s, nil
	}
	stored, err := client.Get(ctx, s.key)
	if err == nil && stored != nil {
		err = json.Unmarshal(stored, &s.state)
	}
	if err != nil {
		return nil, fmt.Errorf("storage: reading the sessions of %s: %w", server, err)
	}
	s.state.Sessions = s.state.Sessions[:min(len(s.state.Sessions), maxSessions)]
	s.state.Owed = s.state.Owed[:min(len(s.state.Owed), maxSessions)]
	return s, nil
}

// State returns a copy of the state.
func (s *Store) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.state
	state.Sessions, state.Owed = slices.Clone(state.Sessions), slices.Clone(state.Owed)
	return state
}

// Begin stores the process. The sessions and classes of another process are gone.
func (s *Store) Begin(ctx context.Context, process Process) {
	s.change(ctx, func() {
		if s.state.Process != process {
			s.state = State{Process: process}
		}
	})
}

// Opened stores a session.
func (s *Store) Opened(ctx context.Context, id string, classes Classes) {
	s.change(ctx, func() { s.state.Sessions = append(s.state.Sessions, Session{id, classes}) })
}

// Closed removes a session. Its classes need a reset.
func (s *Store) Closed(ctx context.Context, id string) {
	s.change(ctx, func() {
		s.state.Sessions = slices.DeleteFunc(s.state.Sessions, func(session Session) bool {
			if session.ID == id && !slices.Contains(s.state.Owed, session.Classes) {
				s.state.Owed = append(s.state.Owed, session.Classes)
			}
			return session.ID == id
		})
	})
}

// Restored removes classes that have been reset.
func (s *Store) Restored(ctx context.Context, classes Classes) {
	s.change(ctx, func() {
		s.state.Owed = slices.DeleteFunc(s.state.Owed, func(c Classes) bool { return c == classes })
	})
}

func (s *Store) change(ctx context.Context, change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	if s.client == nil {
		return
	}
	// A state always has JSON. The store writes it also while a shutdown cancels the work that changed it.
	stored, _ := json.Marshal(s.state)
	if err := s.client.Set(context.WithoutCancel(ctx), s.key, stored); err != nil {
		s.failed(err)
	}
}
