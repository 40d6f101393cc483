// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pprofpages

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/google/pprof/driver"
	"github.com/google/pprof/profile"
)

// driverState is held while the driver runs: its current settings, its mode and where it
// looks for files are those of the process, so all exporters of the process share this.
var driverState sync.Mutex

// handlersOf gives the driver's handlers of the profile, by their paths. The driver's
// state has to be held.
func handlersOf(p *profile.Profile) (map[string]http.Handler, error) {
	restore, err := withoutSettings()
	if err != nil {
		return nil, err
	}
	defer restore()
	var handlers map[string]http.Handler
	err = driver.PProf(options(p, func(served *driver.HTTPServerArgs) error {
		handlers = served.Handlers
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("pprof: %w", err)
	}
	if handlers == nil {
		return nil, errors.New("pprof: expected it to serve pages, it didn't")
	}
	return handlers, nil
}

// hasNoSettings says that the driver knows where it would find settings, and there are none.
// Then the environment, which is that of the whole process, can stay as it is.
func hasNoSettings() bool {
	directory, err := os.UserConfigDir()
	if err != nil {
		return false
	}
	_, err = os.Lstat(filepath.Join(directory, "pprof"))
	return errors.Is(err, fs.ErrNotExist)
}

// noDirectory is where the driver is told that settings are: it is a file, so nothing can
// be below it.
const noDirectory = os.DevNull

// withoutSettings lets the driver believe that there is a directory for its settings, for
// as long as until restore is called, and be it in an environment that has none. It keeps
// its path then, and finds nothing there. Others of the process see that, too, if they look
// meanwhile.
func withoutSettings() (restore func(), err error) {
	if hasNoSettings() {
		return func() {}, nil
	}
	variable := configVariable(runtime.GOOS)
	before, was := os.LookupEnv(variable)
	if err := os.Setenv(variable, noDirectory); err != nil {
		return nil, fmt.Errorf("set %s for pprof: %w", variable, err)
	}
	return func() {
		if was {
			err = os.Setenv(variable, before)
		} else {
			err = os.Unsetenv(variable)
		}
	}, nil
}

// configVariable is the environment variable that [os.UserConfigDir] looks at first.
func configVariable(system string) string {
	switch system {
	case "windows":
		return "AppData"
	case "darwin", "ios":
		return "HOME"
	case "plan9":
		return "home"
	}
	return "XDG_CONFIG_HOME"
}
