// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pprofpages

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/google/pprof/driver"
	"github.com/google/pprof/profile"
)

// driverState is held while the driver runs. Its settings and its mode belong to the process,
// so all exporters of the process share this lock.
var driverState sync.Mutex

// handlersOf returns the driver's handlers of the profile, by their paths. The caller holds
// driverState.
func handlersOf(p *profile.Profile) (map[string]http.Handler, error) {
	var handlers map[string]http.Handler
	err := driver.PProf(options(p, func(served *driver.HTTPServerArgs) error {
		handlers = served.Handlers
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("pprof: %w", err)
	}
	if handlers == nil {
		return nil, errors.New("pprof: expected it to serve pages, but it served none")
	}
	return handlers, nil
}
