// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"io"
	"net/http"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/treeformat"
	"github.com/callbraid/callbraid/internal/componentkit/sameorigin"
)

// pprofFile is the download that go tool pprof reads, and speedscopeFile the one for speedscope.
const (
	pprofFile      = "profile.pb.gz"
	speedscopeFile = "profile.speedscope.json"
)

// format is a file format of trees.
type format struct {
	contentType string
	write       func(io.Writer, calltree.Snapshot) error
}

var formats = map[string]format{
	pprofFile:        {"application/octet-stream", writeProfile},
	"profile.folded": {"text/plain; charset=utf-8", writeFolded},
	speedscopeFile:   {"application/json", treeformat.WriteSpeedscope},
}

// downloadBounds are for formats that write a stack for each path. Trees of real programs
// are within.
var downloadBounds = treeformat.Bounds{Nodes: 2_000_000, Frames: 16_000_000}

func writeProfile(w io.Writer, s calltree.Snapshot) error {
	return treeformat.WriteProfile(w, treeformat.Reduce(s, treeformat.Value{}, downloadBounds))
}

func writeFolded(w io.Writer, s calltree.Snapshot) error {
	return treeformat.WriteFolded(w, treeformat.Reduce(s, treeformat.Value{}, downloadBounds))
}

// download serves the tree in a format. With seconds=N it serves a window of that length.
func (h *Handler) download(name string) func(http.ResponseWriter, *http.Request, tree) error {
	return func(w http.ResponseWriter, r *http.Request, t tree) error {
		turn := h.turn(h.downloads)
		defer turn.end()
		s, err := h.requestedSnapshot(w, r, t, &turn)
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", formats[name].contentType)
		w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
		_ = formats[name].write(h.send(w, &turn), s) // the client has gone, or reads too slowly
		return nil
	}
}

// requestedSnapshot returns the tree when its turn has come, or a window of it if the query asks for
// seconds.
func (h *Handler) requestedSnapshot(w http.ResponseWriter, r *http.Request, t tree, turn *turn) (s calltree.Snapshot, err error) {
	seconds := r.URL.Query().Get("seconds")
	switch {
	case seconds == "":
		return t.inTurn(r.Context(), turn)
	case sameorigin.IsOfOtherSite(r), isOfScript(r): // it could use all windows
		return s, errOtherSite
	case t.isWindow():
		return s, badRequestf("seconds: a collected window has a fixed length: leave seconds out")
	}
	d, err := parseSeconds(seconds)
	if err != nil {
		return s, err
	}
	return h.collect(w, r, t.service, t.kind, d, turn)
}

// isOfScript reports whether a script of a page sends the request. speedscope does: its address names
// the file to load, and another site can lead to that address. The script of flame graphs loads no
// downloads.
func isOfScript(r *http.Request) bool { return r.Header.Get("Sec-Fetch-Mode") == "cors" }
