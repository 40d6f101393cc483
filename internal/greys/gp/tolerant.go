// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"encoding/json"

	"go.yaml.in/yaml/v3"
)

// tolerate reads invalid JSON as YAML and returns it as JSON; nil means that it is not YAML either. JSON is a subset of
// YAML. YAML also allows the sloppy forms of the document's samples: commas behind the last element, and strings in
// single quotes without escapes.
func tolerate(data []byte) []byte {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil || document.Kind != yaml.DocumentNode {
		return nil
	}
	return appendNode(nil, document.Content[0])
}

// appendNode adds a node as JSON. An alias becomes null: authors of JSON do not mean aliases.
func appendNode(to []byte, node *yaml.Node) []byte {
	switch node.Kind {
	case yaml.MappingNode:
		to = append(to, '{')
		for i := 0; i+1 < len(node.Content); i += 2 {
			if i > 0 {
				to = append(to, ',')
			}
			to = appendText(to, node.Content[i].Value)
			to = append(to, ':')
			to = appendNode(to, node.Content[i+1])
		}
		return append(to, '}')
	case yaml.SequenceNode:
		to = append(to, '[')
		for i, element := range node.Content {
			if i > 0 {
				to = append(to, ',')
			}
			to = appendNode(to, element)
		}
		return append(to, ']')
	case yaml.ScalarNode:
		if node.Style == 0 && json.Valid([]byte(node.Value)) {
			return append(to, node.Value...) // a number, a boolean, or null
		}
		return appendText(to, node.Value)
	default:
		return append(to, "null"...)
	}
}
