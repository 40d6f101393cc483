// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package program is what every command line of the project has: it says its version,
// and writes its man pages.
package program

import (
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// version is the distribution's, from builder-config.yaml; the linker sets it (-X).
var version string

// Complete gives a program's root command --version and, for whoever packs the program,
// the hidden command man.
func Complete(root *cobra.Command) *cobra.Command {
	root.Version = Version()
	root.AddCommand(manCommand(root))
	return root
}

// Version is the distribution's version, or that of the module where go install built
// the program; "(devel)" where nobody says.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

func manCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:    "man DIRECTORY",
		Short:  "Write the man pages of all commands",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			hideFromManual(root)
			return doc.GenManTree(root, &doc.GenManHeader{
				Title: strings.ToUpper(root.Name()), Section: "1", Source: "Callbraid " + Version(), Manual: "Callbraid",
			}, args[0])
		},
	}
}

// hideFromManual leaves out what shells ask for, and the line that says when a page was made.
func hideFromManual(c *cobra.Command) {
	c.DisableAutoGenTag = true
	for _, sub := range c.Commands() {
		if sub.Name() == "completion" {
			sub.Hidden = true
		}
		hideFromManual(sub)
	}
}
