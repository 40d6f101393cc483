// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"encoding/json"

	"go.yaml.in/yaml/v3"
)

// tolerate reads what is no JSON as YAML, of which JSON is a part, and gives it as JSON; nil:
// it is none either. YAML has what the document's samples have and JSON doesn't: commas
// behind the last element, and texts in single quotes, in which nothing is escaped.
func tolerate(data []byte) []byte {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil || document.Kind != yaml.DocumentNode {
		return nil
	}
	return appendNode(nil, document.Content[0])
}

// appendNode adds a node as JSON. What stands for another by an alias, which is not meant by
// those who write JSON, is null.
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
			return append(to, node.Value...) // a number, a truth, or null
		}
		return appendText(to, node.Value)
	default:
		return append(to, "null"...)
	}
}
