// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package pprofpages serves a profile by the pages of pprof's own web interface: flame
// graph, top and peek. It knows pprof's driver and what has to be kept from it; it knows
// no call trees and no routes.
//
// The driver is made for a command: it has state of its process, looks for settings in the
// user's directory, reads the command line, fetches profiles and opens object files. Here
// it is given a profile and nothing else: see [options]. Of its pages only those are
// served that show the profile and need no other program.
package pprofpages
