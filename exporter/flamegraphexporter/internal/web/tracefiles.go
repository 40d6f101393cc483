// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/recordfile"
)

// Trace files are the files of an exporter perfetto: whole runs with a time axis. This package knows their path, and not
// their content.

const (
	// mostTraceFiles is how many trace files a page lists.
	mostTraceFiles = 100
	// mostTraceFileDownloads is how many of them are sent at the same time. They are large, so they have their own turns.
	mostTraceFileDownloads = 2
	// slowestTraceFile is the speed, in bytes a second, that extends the server's time for a response.
	slowestTraceFile = 1 << 20
)

// traceFiles is the list of trace files on a page.
type traceFiles struct {
	// Root is the way from the page to the page of all services.
	Root string
	// Files are the latest ones first, and More is the number of those that are not listed.
	Files []recordfile.Listed
	More  int
	// Failed: the files cannot be listed.
	Failed bool
}

// listTraceFiles returns the list for a page, or nil if the handler has no path.
func (h *Handler) listTraceFiles(root string) *traceFiles {
	if h.options.TraceFiles == "" {
		return nil
	}
	all, err := recordfile.List(h.options.TraceFiles)
	if err != nil {
		if _, due := h.unlisted.Count(time.Now()); due {
			h.options.Logger.Warn("Could not list the trace files", zap.String("trace_files", h.options.TraceFiles), zap.Error(err))
		}
		return &traceFiles{Failed: true}
	}
	shown := all[:min(mostTraceFiles, len(all))]
	return &traceFiles{Root: root, Files: shown, More: len(all) - len(shown)}
}

// traceFile serves a trace file.
func (h *Handler) traceFile(w http.ResponseWriter, r *http.Request) {
	h.answerError(w, r, h.downloadTraceFile(w, r))
}

func (h *Handler) downloadTraceFile(w http.ResponseWriter, r *http.Request) error {
	turn := h.turn(h.fileDownloads)
	defer turn.end()
	if err := turn.wait(r.Context()); err != nil {
		return err
	}
	file, err := h.openTraceFile(unsegment(r.PathValue("file")))
	if err != nil {
		return err
	}
	defer file.Close() // read only
	size := file.Listed.Size
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": file.Listed.Name}))
	to := h.send(w, &turn)
	if !to.end.IsZero() {
		to.end = to.end.Add(time.Duration(size/slowestTraceFile) * time.Second)
	}
	_, _ = io.Copy(to, file) // the client has gone, or reads too slowly
	return nil
}

// openTraceFile opens a listed file. It ends with its last whole chunk, also while it is being written.
func (h *Handler) openTraceFile(name string) (*recordfile.Snapshot, error) {
	if h.options.TraceFiles == "" {
		return nil, errNoTraceFile
	}
	file, err := recordfile.OpenListed(h.options.TraceFiles, name, recordfile.LastPacketEnd)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNoTraceFile
	case err != nil:
		return nil, fmt.Errorf("open a trace file: %w", err)
	}
	return file, nil
}
