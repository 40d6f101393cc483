// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
)

// serviceLink matches links to pages of services on the page of all services.
var serviceLink = regexp.MustCompile(`href="(services/[^/"]+/)"`)

// serviceAddress is the address of the page of the first service.
func serviceAddress(ctx context.Context, pages string) (string, error) {
	page, err := fetch(ctx, pages)
	if err != nil {
		return "", err
	}
	link := serviceLink.FindSubmatch(page)
	if link == nil {
		return "", fmt.Errorf("%s: expected a link to a service, found none", pages)
	}
	base, err := url.Parse(pages)
	if err != nil {
		return "", err
	}
	address, err := base.Parse("/" + html.UnescapeString(string(link[1])))
	if err != nil {
		return "", err
	}
	return address.String(), nil
}

func fetch(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() // read only
	return io.ReadAll(response.Body)
}
