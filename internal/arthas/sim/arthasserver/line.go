// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasserver

import "strings"

// Tokens splits a command line as Arthas does. A token loses its quotes.
func Tokens(line string) []string {
	var tokens []string
	for at := 0; at < len(line); {
		if line[at] == ' ' || line[at] == '\t' {
			at++
			continue
		}
		var token string
		token, at = textToken(line, at)
		// Arthas cuts a vertical bar at the end or at the begin of a token, in quotes or not.
		switch {
		case len(token) > 1 && strings.HasSuffix(token, "|"):
			tokens = append(tokens, token[:len(token)-1], "|")
		case len(token) > 1 && strings.HasPrefix(token, "|"):
			tokens = append(tokens, "|", token[1:])
		default:
			tokens = append(tokens, token)
		}
	}
	return tokens
}

// textToken reads a token that begins at a position, and returns the position behind it.
func textToken(line string, at int) (string, int) {
	var token strings.Builder
	quote, escaped := byte(0), false
	for ; at < len(line); at++ {
		c := line[at]
		switch {
		case escaped:
			if quote == '"' && c != '"' {
				token.WriteByte('\\')
			}
			token.WriteByte(c)
			escaped = false
		case quote == 0 && (c == ' ' || c == '\t'):
			return token.String(), at
		case quote != '\'' && c == '\\':
			escaped = true
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote != 0 && c == quote:
			quote = 0
		default:
			token.WriteByte(c)
		}
	}
	return token.String(), at
}

// Line is a command line as Arthas understands it.
type Line struct {
	Command string
	// Options are the options with their values; those without a value have "".
	Options map[string]string
	// Arguments are the other tokens.
	Arguments []string
	// Redirected is the file that the results go to; Piped and Background tell what else the line asks for.
	Redirected        string
	Piped, Background bool
	// Unknown is the first option that the command does not have.
	Unknown string
}

// valued are the options with a value, of all commands. All others have none.
var valued = map[string]bool{
	"-c": true, "-n": true, "-i": true, "-x": true, "-M": true, "-m": true, "-w": true, "-s": true, "-p": true,
	"--exclude-class-pattern": true, "--skipJDKMethod": true, "--event": true, "--interval": true, "--format": true, "--file": true,
	"--state": true, "--action": true, "--className": true, "--limit": true,
}

// flags are the options without a value, by command.
var flags = map[string]string{
	"monitor": "-E -b -v", "trace": "-E -v", "stack": "-E -v", "watch": "-E -b -e -s -f -v", "tt": "-E -t -l -d -p -v --delete-all",
	"sc": "-d -f -E", "sm": "-d -E", "reset": "-E", "thread": "--all -b",
}

// Parse reads a command line.
func Parse(line string) Line {
	tokens := Tokens(line)
	parsed := Line{Options: map[string]string{}}
	if len(tokens) == 0 {
		return parsed
	}
	if tokens[len(tokens)-1] == "&" {
		parsed.Background, tokens = true, tokens[:len(tokens)-1]
	}
	if len(tokens) == 0 {
		return parsed
	}
	parsed.Command = tokens[0]
	own := strings.Fields(flags[parsed.Command])
	argumentsOnly := false
	for i := 1; i < len(tokens); i++ {
		token := tokens[i]
		switch {
		case token == "|":
			parsed.Piped = true
			return parsed
		case token == ">" || token == ">>":
			if i+1 < len(tokens) {
				parsed.Redirected = tokens[i+1]
			}
			return parsed
		case argumentsOnly:
			parsed.Arguments = append(parsed.Arguments, token)
		case token == "--":
			argumentsOnly = true
		case !strings.HasPrefix(token, "-") || token == "-":
			parsed.Arguments = append(parsed.Arguments, token)
		case contains(own, token):
			parsed.Options[token] = ""
		case valued[token] && i+1 < len(tokens):
			i++
			parsed.Options[token] = tokens[i]
		case parsed.Unknown == "":
			parsed.Unknown = token
		}
	}
	return parsed
}

func contains(words []string, word string) bool {
	for _, w := range words {
		if w == word {
			return true
		}
	}
	return false
}
