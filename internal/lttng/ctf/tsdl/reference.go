// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tsdl

import (
	"fmt"
	"slices"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// maxPath bounds the number of names in the path of a field.
const maxPath = 64

// prefixes are the paths that name a scope.
var prefixes = []struct {
	names []string
	scope metadata.Scope
}{
	{[]string{"trace", "packet", "header"}, metadata.PacketHeader},
	{[]string{"stream", "packet", "context"}, metadata.PacketContext},
	{[]string{"stream", "event", "header"}, metadata.EventHeader},
	{[]string{"stream", "event", "context"}, metadata.EventCommonContext},
	{[]string{"event", "context"}, metadata.EventContext},
	{[]string{"event", "fields"}, metadata.EventFields},
}

// reference reads the path of a field: names with dots or arrows between them.
func (p *Parser) reference() metadata.Ref {
	ref := metadata.Ref{Where: p.tok.where, Search: true}
	ref.Path = p.path("the path of a field")
	for _, prefix := range prefixes {
		n := len(prefix.names)
		if len(ref.Path) > n && slices.Equal(ref.Path[:n], prefix.names) {
			ref.Origin, ref.Search, ref.Path = prefix.scope, false, ref.Path[n:]
			break
		}
	}
	return ref
}

// path reads words with dots or arrows between them.
func (p *Parser) path(expected string) []string {
	names := []string{p.word(expected).text}
	for p.is(".") || p.is("->") {
		if len(names) == maxPath {
			p.failToken(fmt.Sprintf("at most %d names in a path", maxPath))
		}
		p.next()
		names = append(names, p.word("the next name of a path").text)
	}
	return names
}
