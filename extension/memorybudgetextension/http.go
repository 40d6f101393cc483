// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package memorybudgetextension

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/callbraid/callbraid/internal/componentkit/otlpsize"
)

const (
	contentType  = "Content-Type"
	typeProtobuf = "application/x-protobuf"
	typeJSON     = "application/json"
	// retryAfter is when a client may send a request again that had no memory, in seconds.
	retryAfter = "1"
	// firstBytes is how much is read first of a body. Each further piece is as long as all before.
	firstBytes = 4 << 10
	// ofHTTP is how many further copies of a body the receiver makes, as a slice that grows.
	ofHTTP = 2
)

// httpServer judges the bodies of OTLP requests, which the Collector has decompressed and
// bounded before. Requests for pages share them. It is the outermost middleware.
type httpServer struct {
	*requests
	next  http.Handler
	pages pages
}

func newHTTPServer(q *requests, next http.Handler) *httpServer {
	return &httpServer{requests: q, next: next, pages: pages{
		requests: q, next: next, timeout: q.config.WriteTimeout, made: map[pageKey]*page{},
	}}
}

// paths are the ends of the receiver's default paths.
var paths = map[string]otlpsize.Message{
	"/v1/traces": otlpsize.Traces, "/v1/logs": otlpsize.Logs, "/v1/metrics": otlpsize.Metrics, "/v1development/profiles": otlpsize.Profiles,
}

// ServeHTTP releases all memory of the request when the receiver has answered. It passes on requests that are neither
// for pages nor OTLP: an OTLP receiver refuses them without reading their body.
func (s *httpServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		s.pages.ServeHTTP(w, r)
		return
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get(contentType))
	if err != nil || r.Method != http.MethodPost || kind != typeProtobuf && kind != typeJSON {
		s.next.ServeHTTP(w, r)
		return
	}
	taken := 0
	defer func() { s.account.Release(taken) }()
	leave, refused := s.enter(r.RemoteAddr)
	if refused != nil {
		s.refuse(w, r, kind, refused)
		return
	}
	defer leave()
	body, refused, err := s.read(w, r, &taken)
	if refused == nil && err == nil {
		var more int
		more, refused = s.judge(body, ofHTTP*len(body), walkOf(kind, r.URL.Path))
		taken += more
	}
	if refused != nil {
		s.refuse(w, r, kind, refused)
		return
	}
	// The receiver reports an error of reading in its own words.
	r.Body = &readBody{Reader: bytes.NewReader(body), err: err, closer: r.Body}
	s.next.ServeHTTP(w, r)
}

// read reads the body, and reserves memory for it as it arrives.
func (s *httpServer) read(w http.ResponseWriter, r *http.Request, taken *int) (body []byte, refused *refusal, err error) {
	controller := http.NewResponseController(w)
	// A connection that has no deadlines has no timeout either: it is a test's. The deadline stays
	// where the body is not read to its end, since the server reads on.
	timed := controller.SetReadDeadline(time.Now().Add(s.config.ReadTimeout)) == nil
	for {
		if len(body) == cap(body) {
			more := max(firstBytes, cap(body))
			got, refused := s.reserve(more)
			if refused != nil {
				return nil, refused, nil
			}
			*taken += got
			body = append(make([]byte, 0, cap(body)+more), body...)
		}
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == io.EOF {
			if timed {
				_ = controller.SetReadDeadline(time.Time{})
			}
			return body, nil, nil
		}
		if err != nil {
			return body, nil, err
		}
	}
}

// walkOf returns the walk for a body. A receiver may have other paths than the default ones: the
// request may then be of each signal.
func walkOf(kind, path string) func([]byte, int) (otlpsize.Size, error) {
	if kind == typeJSON {
		return otlpsize.JSON
	}
	for end, message := range paths {
		if strings.HasSuffix(path, end) {
			return func(body []byte, most int) (otlpsize.Size, error) { return otlpsize.Protobuf(message, body, most) }
		}
	}
	return func(body []byte, most int) (worst otlpsize.Size, err error) {
		for _, message := range paths {
			size, failed := otlpsize.Protobuf(message, body, most)
			if failed == otlpsize.ErrDepth {
				return size, failed
			}
			worst.Bytes = max(worst.Bytes, size.Bytes)
		}
		return worst, nil
	}
}

// readBody is a body that was read before.
type readBody struct {
	*bytes.Reader
	err    error
	closer io.Closer
}

func (b *readBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF && b.err != nil {
		err = b.err
	}
	return n, err
}

// WriteTo belongs to io.WriterTo, without which an error of reading would be lost.
func (b *readBody) WriteTo(w io.Writer) (int64, error) {
	n, err := b.Reader.WriteTo(w)
	if err == nil {
		err = b.err
	}
	return n, err
}

func (b *readBody) Close() error { return b.closer.Close() }

// refuse answers as OTLP/HTTP has it: with a Status in the encoding of the request.
func (s *httpServer) refuse(w http.ResponseWriter, r *http.Request, kind string, refused *refusal) {
	s.report(r.Context(), refused, r.RemoteAddr, requestRefused)
	marshal := proto.Marshal
	if kind == typeJSON {
		marshal = protojson.Marshal
	}
	// A status without details can always be encoded.
	body, _ := marshal(refused.status().Proto())
	w.Header().Set(contentType, kind)
	code := http.StatusBadRequest
	if refused.code == codes.Unavailable {
		w.Header().Set("Retry-After", retryAfter)
		code = http.StatusServiceUnavailable
	}
	w.WriteHeader(code)
	// The client may have disconnected.
	_, _ = w.Write(body)
}
