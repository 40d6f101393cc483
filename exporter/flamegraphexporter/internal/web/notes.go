// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/componentkit/figures"
)

// notes says what of all that came since the start is not shown as it was, and by which
// setting: a sentence for each reason that there is.
func notes(c calltree.Counters) []string {
	var all []string
	say := func(n uint64, sentence string) {
		if n > 0 {
			all = append(all, fmt.Sprintf(sentence, figures.Count(n)))
		}
	}
	say(c.ParentsNotSeen.Limit, "Callers that were given up: %s, because of max_pending or a tenth of max_nodes; "+
		"their callees are below (parent not seen), and late callers' own time includes that of their callees.")
	say(c.ParentsNotSeen.Timeout, "Callers that did not arrive within pending_timeout: %s; their callees are below (parent not seen).")
	say(c.ParentsNotSeen.Cycle, "Calls that name their own callee as their caller: %s; they are below (parent not seen).")
	say(c.FoldedPaths, "Paths that were folded: %s, because of max_nodes or max_names_mib; "+
		"their calls are in (folded: small paths).")
	say(c.OtherServices, "Calls and samples of services beyond max_services: %s; they are in (other services).")
	say(c.YieldedServices, "Services that were replaced by others that had shown more: %s; their calls are in (other services); see max_services.")
	say(c.Shed.Paths, "Folded paths because of the memory budget: %s; see limit_mib of the extension memory_budget.")
	say(c.SilentServices, "Silent services that were replaced by others, with all of their counts: %s; see max_services.")
	say(c.DroppedSamples, "Samples that were dropped: %s, because their service has too many kinds of profiles.")
	return all
}
