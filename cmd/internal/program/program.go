// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package program has the common parts of the project's command lines: the version, man pages, and completions of shells.
package program

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// version is the distribution's, from builder-config.yaml; the linker sets it (-X).
var version string

// Complete adds --version to a program's root command, and the hidden commands man and completions for packagers.
func Complete(root *cobra.Command) *cobra.Command {
	root.Version = Version()
	root.AddCommand(manCommand(root), completionsCommand(root))
	return root
}

// Version is the distribution's version, or that of the module if go install built the program. If
// neither is known it is "(devel)".
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

func completionsCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:    "completions DIRECTORY",
		Short:  "Write the completions for bash, zsh and fish",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			name := root.Name()
			return errors.Join(
				root.GenBashCompletionFileV2(filepath.Join(args[0], name+".bash"), true),
				root.GenZshCompletionFile(filepath.Join(args[0], "_"+name)),
				root.GenFishCompletionFile(filepath.Join(args[0], name+".fish"), true),
			)
		},
	}
}

// hideFromManual hides commands for shells, and the line with the time of the page.
func hideFromManual(c *cobra.Command) {
	c.DisableAutoGenTag = true
	for _, sub := range c.Commands() {
		if sub.Name() == "completion" {
			sub.Hidden = true
		}
		hideFromManual(sub)
	}
}
