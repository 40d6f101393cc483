// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"crypto/rand"
	"net/http"
	"sync"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/webpage"
)

// Bounds of the kept pages: their number, and the size of one in bytes.
const (
	maxKept      = 32
	maxKeptBytes = 256 * kib
)

// keptPages are the answers to forms. Each has its own address, so reloading it does not send the
// command again. The latest ones are kept.
type keptPages struct {
	mu    sync.Mutex
	keys  []string
	pages map[string]page
}

// page is a page as it is sent.
type page struct {
	status int
	html   []byte
}

// keep adds a page and returns its key; empty: it is too large.
func (k *keptPages) keep(p page) (key string) {
	if len(p.html) > maxKeptBytes {
		return ""
	}
	key = rand.Text()
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.keys) == maxKept {
		delete(k.pages, k.keys[0])
		k.keys = k.keys[1:]
	}
	if k.pages == nil {
		k.pages = map[string]page{}
	}
	k.keys = append(k.keys, key)
	k.pages[key] = p
	return key
}

func (k *keptPages) find(key string) (p page, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, ok = k.pages[key]
	return p, ok
}

// answerForm answers a form with a page that is to be looked at elsewhere: from the form's
// address and from its own, everything else is two steps up.
func (s *site) answerForm(w http.ResponseWriter, r *http.Request, status int, name string, data any) {
	html, err := renderPage(name, data)
	if err != nil {
		s.failedRender(w, err)
		return
	}
	p := page{status, html}
	if key := s.kept.keep(p); key != "" {
		w.Header().Set("Location", "../../answers/to/"+key)
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	p.write(w, r)
}

// answerPage answers with a kept page.
func (s *site) answerPage(w http.ResponseWriter, r *http.Request) {
	if p, ok := s.kept.find(r.PathValue("key")); ok {
		p.write(w, r)
		return
	}
	s.failedPage(w, r, "../../", problemOf(notFound, 0, "this answer is no longer kept"))
}

func (p page) write(w http.ResponseWriter, r *http.Request) { webpage.Write(w, r, p.status, p.html) }

func (s *site) failedRender(w http.ResponseWriter, err error) {
	s.logger.Error("A page could not be made", zap.Error(err))
	http.Error(w, "the page could not be made", http.StatusInternalServerError)
}
