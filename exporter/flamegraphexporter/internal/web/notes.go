// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/componentkit/figures"
)

// notes describes data since the start that is not shown as it arrived, with the setting: a
// sentence for each reason.
func notes(c calltree.Counters) []string {
	var all []string
	noteCount := func(n uint64, sentence string) {
		if n > 0 {
			all = append(all, fmt.Sprintf(sentence, figures.Count(n)))
		}
	}
	noteCount(c.ParentsNotSeen.Limit, "Callers that were given up: %s, because of max_pending or a tenth of max_nodes. "+
		"Their callees are below (parent not seen). Late callers' own time includes that of their callees.")
	noteCount(c.ParentsNotSeen.Timeout, "Callers that did not arrive within pending_timeout: %s; their callees are below (parent not seen).")
	noteCount(c.ParentsNotSeen.Cycle, "Calls that name their own callee as their caller: %s; they are below (parent not seen).")
	noteCount(c.FoldedPaths, "Paths that were folded: %s, because of max_nodes or max_names_mib; "+
		"their calls are in (folded: small paths).")
	noteCount(c.OtherServices, "Calls and samples of services beyond max_services: %s; they are in (other services).")
	noteCount(c.MixedServices, "Services whose spans and profiles of call paths both count: %s; their calls count twice: set count_spans to false.")
	noteCount(c.YieldedServices, "Services that were replaced by more active ones: %s; their calls are in (other services); see max_services.")
	noteCount(c.Shed.Paths, "Folded paths because of the memory budget: %s; see limit_mib of the extension memory_budget.")
	noteCount(c.SilentServices, "Silent services that were replaced by others, with all of their counts: %s; see max_services.")
	noteCount(c.DroppedSamples, "Samples that were dropped: %s, because their service has too many kinds of profiles.")
	return all
}
