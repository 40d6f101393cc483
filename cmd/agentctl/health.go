// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
)

// defaultHealth is the address of health_check in the shipped configurations.
const defaultHealth = "http://localhost:13133"

// maxHealthBytes bounds the printed bytes of a response.
const maxHealthBytes = 1024

func healthCommand(connect *connectFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "health [URL]",
		Short: "Check that the collector is healthy",
		Long: `health asks the extension health_check of a collector, by default at
` + defaultHealth + `. It exits with 0 if the collector is healthy. The container image uses it,
which has no other program that can ask.`,
		Example: `  agentctl health
  agentctl health --timeout 3s http://localhost:13135`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			where := *connect
			where.endpoint = defaultHealth
			if len(args) > 0 {
				where.endpoint = args[0]
			}
			client, err := where.client()
			if err != nil {
				return err
			}
			answer, err := health(c.Context(), client.HTTP, where.endpoint)
			if err != nil {
				return err
			}
			fmt.Fprintln(c.OutOrStdout(), printable(answer))
			return nil
		},
	}
}

// health requests the health at a URL, and returns the response. A response with another status than 200 is an error.
func health(ctx context.Context, client *http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxHealthBytes))
	if err != nil {
		return "", fmt.Errorf("GET %s: %w", redacted(url), err)
	}
	answer := strings.TrimSpace(string(text))
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("GET %s: expected status 200, got %s: %s", redacted(url), response.Status, answer)
	}
	return answer, nil
}
