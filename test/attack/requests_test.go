// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.yaml.in/yaml/v3"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/testkit/nested"
)

func TestANestedResourceCarriesABatch(t *testing.T) {
	batch, err := batchOf(callevent.StreamID{1}, 7, 3)
	require.NoError(t, err)
	body, err := nestedRequest(nested.GRPC, 1000, &batch)
	require.NoError(t, err)

	request := ptraceotlp.NewExportRequest()
	require.NoError(t, request.UnmarshalProto(body))
	require.Equal(t, 1, request.Traces().ResourceSpans().Len())
	spans := request.Traces().ResourceSpans().At(0)
	assert.Equal(t, 1, spans.Resource().Attributes().Len())
	require.Equal(t, 1, request.Traces().SpanCount())
	data, err := callevent.Data(spans.ScopeSpans().At(0).Spans().At(0))
	require.NoError(t, err)
	var read callevent.Batch
	require.NoError(t, read.Unpack(data))
	assert.Equal(t, 3, read.Len())
}

func TestAShippedConfigurationIsMovedToOtherPorts(t *testing.T) {
	text, p := shipped(t, "gateway-pair.yaml", withBytefrog, withHTTP)
	assert.NotContains(t, text, "localhost:")
	var configuration struct {
		Receivers map[string]struct {
			Endpoint  string
			Protocols map[string]struct {
				Endpoint string
				Max      int `yaml:"max_recv_msg_size_mib"`
			}
		}
		Service struct {
			Pipelines map[string]struct{ Receivers []string }
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &configuration))
	otlp := configuration.Receivers["otlp"].Protocols
	assert.Equal(t, p.at(otlpPort), otlp["grpc"].Endpoint)
	assert.Positive(t, otlp["grpc"].Max, "settings beside stay")
	assert.Equal(t, p.at(otlpHTTPPort), otlp["http"].Endpoint)
	assert.Equal(t, p.at(bytefrogPort), configuration.Receivers["bytefrog"].Endpoint)
	assert.Equal(t, []string{"otlp", "bytefrog"}, configuration.Service.Pipelines["traces"].Receivers)
}
