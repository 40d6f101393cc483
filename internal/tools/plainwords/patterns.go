// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "regexp"

// pattern is an expression that readers had to read twice, and the words to use.
type pattern struct {
	expression *regexp.Regexp
	instead    string
}

// patterns has one row for each expression. Letters match in both cases, and a blank also matches a line end.
var patterns = []pattern{
	{words(`whoever|whomever`), `"the client", "the agent", "the caller"`},
	{words(`whatever`), `"any", "all", or the name of the thing`},
	{words(`anew`), `"again"`},
	{words(`of late`), `"recently"`},
	{words(`but for`), `"except"`},
	{words(`tidings`), `"pending", with a noun`},
	{words(`unheard`), `"without reading it"`},
	{words(`in vain`), `the result that did not arrive`},
	{words(`at once`), `"immediately" or "at the same time"`},
	{words(`for ever`), `"forever", or the time`},
	{words(`hand(?:s|ed|ing)? (?:it |them |these |those |data |spans )?on`), `"send" or "forward"`},
	{words(`(?:is|are|was|were|be|been|being) (?:not |never |then )?told`), `"receives", "learns", or a named actor that sends`},
	{words(`(?:is|are|was|were|be|been|being) (?:not |never )?heard(?: of)?`), `"receives", "is connected"`},
	{words(`(?:tell|tells|told) of`), `"reports"`},
	{words(`(?:say|says|said) so`), `"logs it", "reports it"`},
	{words(`(?:is|are|was|were|be|been) said`), `"logs", "reports", with a named subject`},
	{words(`(?:of|by|for|to|from|with|than) whom|to who|of who|for who`), `"the client", "the agent", "the user"`},
	{words(`turn(?:s|ed)? away`), `"refuse"`},
	{words(`(?:is|are|was|were|be|been) left in order`), `"disconnects in order", with a named subject`},
	{words(`what (?:is|are|was|were|has|have|had|comes|came|waits|waited|others|nobody|somebody|it|they|that)`), `a noun: "missing events", "received data"`},
	{sentenceStart(`who`), `"a client that", "an agent that"`},
	{sentenceStart(`what`), `a noun as the subject`},
}

// words compiles an expression that matches whole words.
func words(expression string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:` + blanks(expression) + `)\b`)
}

// sentenceStart compiles an expression that matches a word at the start of a sentence.
func sentenceStart(word string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:[.;]\s+|^)` + word + `\s+[a-z]+`)
}

// blanks lets each blank of an expression match any white space, and the start of the next line of a comment.
func blanks(expression string) string {
	return regexp.MustCompile(` `).ReplaceAllString(expression, `[\s#/]+`)
}
