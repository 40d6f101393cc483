// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package pprofpages serves a profile by the pages of pprof's own web interface: top and
// peek. It knows pprof's driver and the limits that the driver needs. It knows
// no call trees and no routes.
//
// The driver is made for a command. It has state of its process, looks for settings in the
// user's directory, reads the command line, fetches profiles and opens object files. Here it
// gets a profile and nothing else: see [options]. Only those of its pages are served that show
// the profile and need no other program.
//
// The driver finds its settings file by the environment, and no option changes that. The
// environment belongs to the whole process, so this package leaves it as it is. The driver
// reads the file if there is one, and the page is served without the names in it. Nothing
// writes the file.
package pprofpages
