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
	say(c.ParentsNotSeen.Limit, "Callers that were given up: %s, because more was waited for than max_pending, or a tenth of max_nodes; "+
		"what they called is below (parent not seen), and its time is counted as their own where they came later.")
	say(c.ParentsNotSeen.Timeout, "Callers that did not come within pending_timeout: %s; what they called is below (parent not seen).")
	say(c.ParentsNotSeen.Cycle, "Calls that say that what they called has called them: %s; they are below (parent not seen).")
	say(c.FoldedPaths, "Paths that were folded: %s, because there were more than max_nodes, or names took more than max_names_mib; "+
		"their calls are in (folded: small paths).")
	say(c.OtherServices, "Calls and samples of more services than max_services: %s; they are in (other services).")
	say(c.YieldedServices, "Services that left their places to others that had shown more: %s; their calls are in (other services); see max_services.")
	say(c.Shed.Paths, "Of the paths that were folded, so many were because the memory budget asked for memory: %s; see limit_mib of the extension memory_budget.")
	say(c.SilentServices, "Silent services that left their places to others, with all that was counted of them: %s; see max_services.")
	say(c.DroppedSamples, "Samples that were dropped: %s, because their service has profiles of too many kinds.")
	return all
}
