// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"testing"

	"github.com/callbraid/callbraid/internal/testkit/lttng"
	"github.com/callbraid/callbraid/test/kit"
	"github.com/callbraid/callbraid/test/kit/jaeger"
	"github.com/callbraid/callbraid/test/kit/page"
	"github.com/callbraid/callbraid/test/kit/prometheus"
)

// The commands of the tracers' pages print the output of the pages, from the beginning to the first
// span. They run unchanged.

func TestTheExamplesOfThePageOfBytefrogAreTrue(t *testing.T) {
	t.Parallel()
	page.Follow(t, "..", "bytefrog.md")
}

func TestTheExamplesOfThePageOfLTTngAreTrue(t *testing.T) {
	t.Parallel()
	lttng.Require(t)
	jaeger.Require(t, jaeger.V1)
	page.Follow(t, "..", "lttng.md")
}

func TestTheExamplesOfThePageOfLTTngsAgentsAreTrue(t *testing.T) {
	t.Parallel()
	lttng.Require(t)
	lttng.RequireAgents(t)
	page.Follow(t, "..", "lttng-agents.md")
}

func TestTheExamplesOfThePageOfRbkitAreTrue(t *testing.T) {
	t.Parallel()
	page.Follow(t, "..", "rbkit.md")
}

func TestTheExamplesOfThePageOfGreysAreTrue(t *testing.T) {
	t.Parallel()
	page.Follow(t, "..", "greys.md")
}

func TestTheExamplesOfThePageOfArthasAreTrue(t *testing.T) {
	t.Parallel()
	page.Follow(t, "..", "arthas.md")
}

// The pages of operators.

func TestTheExamplesOfThePageOfJaegerAndPrometheusAreTrue(t *testing.T) {
	t.Parallel()
	jaeger.Require(t, jaeger.V2)
	prometheus.Require(t)
	page.Follow(t, "..", "backends.md")
}

func TestTheExamplesOfThePageOfSeveralCollectorsAreTrue(t *testing.T) {
	t.Parallel()
	kit.Gateway(t)
	page.Follow(t, "..", "scale.md")
}

func TestTheExamplesOfThePageOfBytefrogInProductionAreTrue(t *testing.T) {
	t.Parallel()
	page.Follow(t, "..", "production.md")
}
