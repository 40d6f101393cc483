// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"crypto/rand"
	"net/http"
	"sync"

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

func (p page) write(w http.ResponseWriter, r *http.Request) { webpage.Write(w, r, p.status, p.html) }
