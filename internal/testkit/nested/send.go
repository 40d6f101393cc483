// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package nested

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip" // as a compressor
)

// Way is a way of sending a request.
type Way string

// The ways. Those that end in gzip compress the request.
const (
	GRPC         Way = "gRPC"
	GRPCGzip     Way = "gRPC, gzip"
	HTTP         Way = "HTTP, protobuf"
	HTTPGzip     Way = "HTTP, protobuf, gzip"
	HTTPJSON     Way = "HTTP, JSON"
	HTTPJSONGzip Way = "HTTP, JSON, gzip"
)

// Ways returns all ways.
func Ways() []Way { return []Way{GRPC, GRPCGzip, HTTP, HTTPGzip, HTTPJSON, HTTPJSONGzip} }

// IsGRPC reports whether the way is over gRPC.
func (w Way) IsGRPC() bool { return w == GRPC || w == GRPCGzip }

// IsJSON reports whether requests are JSON.
func (w Way) IsJSON() bool { return w == HTTPJSON || w == HTTPJSONGzip }

func (w Way) isGzip() bool { return w == GRPCGzip || w == HTTPGzip || w == HTTPJSONGzip }

// patience limits the time of a request.
const patience = time.Minute

// Send sends a request to the OTLP receiver at address, host:port. The error is the receiver's refusal.
func Send(ctx context.Context, way Way, address string, signal Signal, request []byte) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if way.IsGRPC() {
		return call(ctx, way, address, signal, request)
	}
	return post(ctx, way, address, signal, request)
}

// methods are the gRPC methods of the signals (opentelemetry-proto, collector/*/v1).
var methods = map[Signal]string{
	Traces:   "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
	Logs:     "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
	Metrics:  "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
	Profiles: "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
}

func call(ctx context.Context, way Way, address string, signal Signal, request []byte) error {
	connection, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	options := []grpc.CallOption{grpc.ForceCodec(asBytes{}), grpc.MaxCallSendMsgSize(len(request) + 1)}
	if way.isGzip() {
		options = append(options, grpc.UseCompressor("gzip"))
	}
	var reply []byte
	return connection.Invoke(ctx, methods[signal], &request, &reply, options...)
}

// asBytes is a gRPC codec that does not change messages.
type asBytes struct{}

func (asBytes) Name() string                        { return "proto" }
func (asBytes) Marshal(message any) ([]byte, error) { return *message.(*[]byte), nil }

func (asBytes) Unmarshal(data []byte, message any) error {
	*message.(*[]byte) = bytes.Clone(data)
	return nil
}

// paths are the paths of the signals over HTTP.
var paths = map[Signal]string{
	Traces: "/v1/traces", Logs: "/v1/logs", Metrics: "/v1/metrics", Profiles: "/v1development/profiles",
}

func post(ctx context.Context, way Way, address string, signal Signal, request []byte) error {
	body := request
	if way.isGzip() {
		var compressed bytes.Buffer
		w := gzip.NewWriter(&compressed)
		if _, err := w.Write(request); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		body = compressed.Bytes()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+paths[signal], bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	if way.IsJSON() {
		r.Header.Set("Content-Type", "application/json")
	}
	if way.isGzip() {
		r.Header.Set("Content-Encoding", "gzip")
	}
	// The connection is not reused: the receiver may close it in the middle of a body.
	r.Close = true
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("expected 200 OK, got %s: %.300q", response.Status, answer)
	}
	return nil
}
