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
// [ErrNotThere], [ErrBusy], and that of turn. A call that ends in the window counts as a whole,
// and is shown below its callers also where these came before.
//
// The snapshot is made when turn returns, which is called when the time is over: so there are
// no more snapshots than turns are given.
func (s *Store) Collect(ctx context.Context, service string, kind Kind, length time.Duration, turn func(context.Context) error) (Snapshot, error) {
	t, w, err := s.open(service, kind)
	if err != nil {
		return Snapshot{}, err
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		s.drop(t, w)
		return Snapshot{}, ctx.Err()
	}
	s.end(t, w)
	if err := turn(ctx); err != nil {
		s.drop(t, w)
		return Snapshot{}, err
	}
	copied := s.close(t, w)
	copied.show(w.values)
	return Snapshot{Service: service, Kind: kind, From: w.from, To: w.to, Lost: w.lost, Missing: w.missing, Nodes: copied.tell()}, nil
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

// end ends a window: nothing is counted in it any more.
func (s *Store) end(t *tree, w *window) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.to, w.lost, w.missing = s.now(), t.lost.since(w.lost), t.owner.missing
}

// close takes a window from its tree, and gives the tree as it is.
func (s *Store) close(t *tree, w *window) *tree {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.detach(t, w)
	return t.copy()
}

// drop takes a window from its tree.
func (s *Store) drop(t *tree, w *window) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.detach(t, w)
}

func (s *Store) detach(t *tree, w *window) {
	s.windows--
	t.windows = slices.DeleteFunc(t.windows, func(other *window) bool { return other == w })
}
