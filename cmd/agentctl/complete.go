// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callbraid/callbraid/internal/agentcontrol/api"
)

// completionTimeout bounds the wait of a shell for completions.
const completionTimeout = 2 * time.Second

// limitTime limits the time-out of a command to that of a completion.
func limitTime(c *cobra.Command) (done context.CancelFunc) {
	ctx, done := context.WithTimeout(c.Context(), completionTimeout)
	c.SetContext(ctx)
	return done
}

// completeAgent completes the ID of an agent. The shell selects those with the word's beginning.
func (f *connectFlags) completeAgent(c *cobra.Command, args []string, _ string) (all []cobra.Completion, _ cobra.ShellCompDirective) {
	defer limitTime(c)()
	client, err := f.client()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, _ := client.Agents(c.Context()) // without an answer there are no completions
	for i := range list.Agents {
		a := &list.Agents[i]
		all = append(all, completion(a.ID, a.Tracer+" "+a.Service+" "+a.Address))
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// completeOrder completes an agent, a command, or an argument.
func (f *connectFlags) completeOrder(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return f.completeAgent(c, args, begun)
	}
	defer limitTime(c)()
	_, agent, err := f.agent(c, args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var all []cobra.Completion
	for i := range agent.Descriptions {
		command := &agent.Descriptions[i]
		if len(args) == 1 {
			all = append(all, completion(command.Name, command.Summary))
		} else if command.Name == args[1] {
			return completeArgument(command, args[2:], begun)
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// completeArgument completes the name of a missing argument, or a value.
func completeArgument(command *api.Command, given []string, begun string) (all []cobra.Completion, directive cobra.ShellCompDirective) {
	name, _, hasValue := strings.Cut(begun, "=")
	for i := range command.Parameters {
		p := &command.Parameters[i]
		switch {
		case hasValue && p.Name == name:
			for _, value := range valuesOf(p) {
				all = append(all, completion(p.Name+"="+value, p.Summary))
			}
		case !hasValue && !slices.ContainsFunc(given, func(word string) bool { return strings.HasPrefix(word, p.Name+"=") }):
			all = append(all, completion(p.Name+"=", p.Summary))
		}
	}
	directive = cobra.ShellCompDirectiveNoFileComp
	if !hasValue {
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	return all, directive
}

// valuesOf returns the values of a parameter with few possible values.
func valuesOf(p *api.Parameter) []string {
	if p.Kind == "boolean" {
		return []string{"true", "false"}
	}
	return p.OneOf
}

// completion returns a word without control characters of terminals.
func completion(word, description string) cobra.Completion {
	return cobra.CompletionWithDesc(printable(word), printable(description))
}
