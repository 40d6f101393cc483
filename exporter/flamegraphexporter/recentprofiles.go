// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"sync"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// recentProfiles are the IDs of profiles that arrived. A sender sends a message again if another
// exporter refused it. The older half is forgotten when there are too many.
type recentProfiles struct {
	mu         sync.Mutex
	newer      map[recentProfile]struct{}
	older      map[recentProfile]struct{}
	duplicates uint64
}

type recentProfile struct {
	id pprofile.ProfileID
	of pathValue
}

// pathValue is the meaning of the values of a profile of call paths.
type pathValue int

const (
	pathCalls pathValue = iota
	pathErrors
	pathSelf
	pathValues
)

// maxRecentProfiles bounds half of the recent profiles.
const maxRecentProfiles = 8192

// isFirst reports whether a profile did not arrive before. Profiles without an ID are all new.
func (r *recentProfiles) isFirst(id pprofile.ProfileID, of pathValue) bool {
	if id.IsEmpty() {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := recentProfile{id, of}
	_, isNewer := r.newer[key]
	_, isOlder := r.older[key]
	if isNewer || isOlder {
		r.duplicates++
		return false
	}
	if len(r.newer) == maxRecentProfiles || r.newer == nil {
		r.newer, r.older = map[recentProfile]struct{}{}, r.newer
	}
	r.newer[key] = struct{}{}
	return true
}

// ignored is the number of profiles that arrived before.
func (r *recentProfiles) ignored() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.duplicates
}
