// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"context"
	"slices"
	"time"
)

// Collect gives what comes from now on of a service and kind. It takes as long as it is
// asked to, or until the context is done, whose error it gives then. Other errors are
// [ErrNotThere] and [ErrBusy]. A call that ends in the window counts as a whole, and is
// shown below its callers also where these came before.
func (s *Store) Collect(ctx context.Context, service string, kind Kind, length time.Duration) (Snapshot, error) {
	t, w, err := s.open(service, kind)
	if err != nil {
		return Snapshot{}, err
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		s.close(t, w)
		return Snapshot{}, ctx.Err()
	}
	copied, to := s.close(t, w)
	copied.show(w.values)
	return Snapshot{
		Service: service, Kind: kind, From: w.from, To: to,
		Lost: copied.lost.since(w.lost), Nodes: copied.tell(),
	}, nil
}

// open opens a window.
func (s *Store) open(service string, kind Kind) (*tree, *window, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tree(service, kind)
	switch {
	case t == nil:
		return nil, nil, ErrNotThere
	case s.windows >= s.settings.MaxWindows:
		s.counters.RefusedWindows++
		return nil, nil, ErrBusy
	}
	s.epoch++
	w := newWindow(s.now(), s.epoch, t.lost)
	s.windows++
	t.windows = append(t.windows, w)
	return t, w, nil
}

// close closes a window, and gives the tree as it is, and the time.
func (s *Store) close(t *tree, w *window) (*tree, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.windows--
	t.windows = slices.DeleteFunc(t.windows, func(other *window) bool { return other == w })
	return t.copy(), s.now()
}
