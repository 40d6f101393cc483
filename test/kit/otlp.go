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

	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/testkit"
)

// ServeOTLP is a backend that accepts traces over OTLP/HTTP with protobuf. The result of accept is
// the status of the answer: http.StatusOK, or a refusal. A client tries again after 429, 502, 503
// and 504, and drops the data after others. ServeOTLP returns the endpoint for an otlp_http
// exporter. After stop, or the end of the test, accept is not called any more.
func ServeOTLP(t testing.TB, accept func(ptrace.Traces) int) (endpoint string, stop func()) {
	t.Helper()
	return serveOTLP(t, "/v1/traces", func(body []byte) (int, error) {
		traces, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(body)
		if err != nil {
			return 0, err
		}
		return accept(traces), nil
	})
}

// ServeOTLPProfiles is ServeOTLP for profiles.
func ServeOTLPProfiles(t testing.TB, accept func(pprofile.Profiles) int) (endpoint string, stop func()) {
	t.Helper()
	return serveOTLP(t, "/v1development/profiles", func(body []byte) (int, error) {
		profiles, err := new(pprofile.ProtoUnmarshaler).UnmarshalProfiles(body)
		if err != nil {
			return 0, err
		}
		return accept(profiles), nil
	})
}

// serveOTLP serves requests of one signal. Requests of all signals have the same layout; the answer
// has no content.
func serveOTLP(t testing.TB, path string, accept func(body []byte) (status int, err error)) (endpoint string, stop func()) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client disconnected
		}
		status, err := accept(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if status != http.StatusOK {
			http.Error(w, "the test refuses", status)
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	})
	return Serve(t, mux)
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
