// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/callevent"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/metadata"
)

func setScope(scope pcommon.InstrumentationScope, build component.BuildInfo) {
	scope.SetName(metadata.ScopeName)
	scope.SetVersion(build.Version)
}

// batchTraces makes of a batch what the pipeline takes.
func batchTraces(batch callevent.Packed, resource pcommon.Resource, build component.BuildInfo) ptrace.Traces {
	traces := ptrace.NewTraces()
	resources := traces.ResourceSpans().AppendEmpty()
	resource.CopyTo(resources.Resource())
	scopes := resources.ScopeSpans().AppendEmpty()
	setScope(scopes.Scope(), build)
	batch.To(scopes.Spans().AppendEmpty())
	return traces
}
