// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/componentkit/nesting"
)

// Attributes that name the program in log lines.
const (
	attributeService  = "service.name"
	attributeInstance = "service.instance.id"
)

var errShutdown = errors.New("stack_pairing is shutting down and accepts no more call events")

var errNoRoom = errors.New("no room for these call events while others are accepted: try again")

// peer is the address of the client that sent the data in ctx, as a field of a log line.
func peer(ctx context.Context) zap.Field {
	if addr := client.FromContext(ctx).Addr; addr != nil {
		return zap.String("peer", addr.String())
	}
	return zap.Skip()
}

// split finds the batches, and counts the other spans. It does not change td, because a
// refused call is repeated.
func split(td ptrace.Traces) (batches []carrier, others int) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				if callevent.Carries(span) {
					batches = append(batches, carrier{rs, ss, span})
				} else {
					others++
				}
			}
		}
	}
	return batches, others
}

// without copies td except the spans that match.
func without(td ptrace.Traces, match func(ptrace.Span) bool) ptrace.Traces {
	rest := ptrace.NewTraces()
	td.CopyTo(rest)
	rest.ResourceSpans().RemoveIf(func(rs ptrace.ResourceSpans) bool {
		rs.ScopeSpans().RemoveIf(func(ss ptrace.ScopeSpans) bool {
			ss.Spans().RemoveIf(match)
			return ss.Spans().Len() == 0
		})
		return rs.ScopeSpans().Len() == 0
	})
	return rest
}

// withBatches adds the batches of td to an error that refuses a part of the other spans. The
// caller sends only that part again, and no batch was accepted.
func withBatches(err error, td ptrace.Traces) error {
	part, ok := refusedPart(err)
	if !ok {
		return err
	}
	left := without(td, func(span ptrace.Span) bool { return !callevent.Carries(span) })
	for _, rs := range part.ResourceSpans().All() {
		rs.CopyTo(left.ResourceSpans().AppendEmpty())
	}
	return consumererror.NewTraces(err, left)
}

// shortText is a text among attributes from outside as a field of a log line, cut where it is
// long. A resource may have any number of attributes, so no line shows all of them.
func shortText(attributes pcommon.Map, key string) zap.Field {
	if v, found := attributes.Get(key); found && v.Type() == pcommon.ValueTypeStr {
		return zap.String(key, nesting.Cut(v.Str()))
	}
	return zap.Skip()
}
