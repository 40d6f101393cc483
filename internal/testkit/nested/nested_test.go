// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package nested_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/callbraid/callbraid/internal/testkit/nested"
)

// request is a request of any signal.
type request interface {
	UnmarshalProto([]byte) error
	UnmarshalJSON([]byte) error
	MarshalJSON() ([]byte, error)
}

func of(signal nested.Signal) request {
	switch signal {
	case nested.Traces:
		return ptraceotlp.NewExportRequest()
	case nested.Logs:
		return plogotlp.NewExportRequest()
	case nested.Metrics:
		return pmetricotlp.NewExportRequest()
	default:
		return pprofileotlp.NewExportRequest()
	}
}

// The Collector must read as many levels as the request has.
func TestTheCollectorReadsTheLevelsOfEachRequest(t *testing.T) {
	const size = 4000
	for _, at := range nested.Places() {
		for _, kind := range []nested.Kind{nested.Lists, nested.Maps} {
			t.Run(string(at.Signal)+" "+at.Name+" "+string(kind), func(t *testing.T) {
				name := map[nested.Kind]string{nested.Lists: "arrayValue", nested.Maps: "kvlistValue"}[kind]

				body, levels := nested.Protobuf(at, kind, size, nil)
				assert.Greater(t, levels, 100)
				assert.LessOrEqual(t, len(body), size)
				assert.Greater(t, len(body), size-80)
				read := of(at.Signal)
				require.NoError(t, read.UnmarshalProto(body))
				again, err := read.MarshalJSON()
				require.NoError(t, err)
				assert.Equal(t, levels, bytes.Count(again, []byte(name)), "levels in protobuf")

				body, levels = nested.JSON(at, kind, size)
				assert.Greater(t, levels, 50)
				assert.LessOrEqual(t, len(body), size)
				assert.True(t, json.Valid(body))
				read = of(at.Signal)
				require.NoError(t, read.UnmarshalJSON(body))
				again, err = read.MarshalJSON()
				require.NoError(t, err)
				assert.Equal(t, levels, bytes.Count(again, []byte(name)), "levels in JSON")
			})
		}
	}
}

// Other values in the message of a nested value do not change it.
func TestOtherValuesBesideANestedValueAreRead(t *testing.T) {
	honest := ptraceotlp.NewExportRequest()
	honest.Traces().ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName("honest")
	body, err := honest.MarshalProto()
	require.NoError(t, err)
	for _, name := range []string{"resource", "scope", "span"} {
		body, _ := nested.Protobuf(nested.At(nested.Traces, name), nested.Lists, 4000, nested.Inside(body))
		read := ptraceotlp.NewExportRequest()
		require.NoError(t, read.UnmarshalProto(body))
		require.Equal(t, 1, read.Traces().ResourceSpans().Len())
		assert.Equal(t, "honest", read.Traces().ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Name())
	}
}
