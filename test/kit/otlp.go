// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/testkit"
)

// Accept are the functions of a backend that accept data, by signal; nil: the backend does not
// have the signal. The result is the status of the answer: http.StatusOK, or a refusal. A client
// tries again after 429, 502, 503 and 504, and drops the data after others.
type Accept struct {
	Traces   func(ptrace.Traces) int
	Metrics  func(pmetric.Metrics) int
	Profiles func(pprofile.Profiles) int
}

// ServeOTLP is a backend that accepts OTLP/HTTP with protobuf. It returns the endpoint for an
// otlp_http exporter. After stop, or the end of the test, no function is called any more.
func ServeOTLP(t testing.TB, accept Accept) (endpoint string, stop func()) {
	t.Helper()
	mux := http.NewServeMux()
	serveSignal(mux, "/v1/traces", new(ptrace.ProtoUnmarshaler).UnmarshalTraces, accept.Traces)
	serveSignal(mux, "/v1/metrics", new(pmetric.ProtoUnmarshaler).UnmarshalMetrics, accept.Metrics)
	serveSignal(mux, "/v1development/profiles", UnmarshalProfiles, accept.Profiles)
	return Serve(t, mux)
}

// UnmarshalProfiles reads a request. pprofile.ProtoUnmarshaler would remove the names of the attributes of
// resources from it.
func UnmarshalProfiles(body []byte) (pprofile.Profiles, error) {
	request := pprofileotlp.NewExportRequest()
	err := request.UnmarshalProto(body)
	return request.Profiles(), err
}

// serveSignal serves requests of one signal. Requests of all signals have the same layout; the
// answer has no content.
func serveSignal[M any](mux *http.ServeMux, path string, unmarshal func([]byte) (M, error), accept func(M) int) {
	if accept == nil {
		return
	}
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client disconnected
		}
		message, err := unmarshal(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if status := accept(message); status != http.StatusOK {
			http.Error(w, "the test refuses", status)
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	})
}

// Serve has a handler answer on loopback until the end of the test, or until stop is called.
func Serve(t testing.TB, handler http.Handler) (endpoint string, stop func()) {
	t.Helper()
	address := testkit.Address(t)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		_ = server.Serve(listener) // ends with Close
		close(done)
	}()
	stop = func() {
		_ = server.Close() // twice is the same as once
		<-done
	}
	t.Cleanup(stop)
	return "http://" + address, stop
}

// SendOTLP sends traces to the OTLP/HTTP receiver of a collector.
func SendOTLP(address string, traces ptrace.Traces) error {
	var marshaler ptrace.ProtoMarshaler
	body, err := marshaler.MarshalTraces(traces)
	if err != nil {
		return err
	}
	response, err := client.Post("http://"+address+"/v1/traces", "application/x-protobuf", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("expected 200 OK, got %s: %.200q", response.Status, answer)
	}
	return nil
}
