// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tsdl

import (
	"fmt"
	"math/big"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// precedences are the operators of C for integers by precedence, weakest first.
var precedences = [][]string{{"|"}, {"^"}, {"&"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"}}

// maxConstantBits bounds intermediate results of an expression.
const maxConstantBits = 128

// constant reads a constant expression with a result of at most 64 bits and a sign.
func (p *Parser) constant() metadata.Number {
	at := p.tok.where
	n := p.binary(0)
	if n.BitLen() > 64 {
		p.fail(at, "a number of at most 64 bits", "%s", n)
	}
	return metadata.Number{Negative: n.Sign() < 0, Magnitude: new(big.Int).Abs(n).Uint64()}
}

// unsigned reads a constant expression whose result is not negative.
func (p *Parser) unsigned(expected string) uint64 {
	at := p.tok.where
	n, ok := p.constant().Uint64()
	if !ok {
		p.fail(at, expected, "a number below 0")
	}
	return n
}

// binary reads operands with operators of this level and of all stronger levels.
func (p *Parser) binary(level int) *big.Int {
	if level == len(precedences) {
		return p.unary()
	}
	left := p.binary(level + 1)
	for {
		operator := ""
		for _, o := range precedences[level] {
			if p.is(o) {
				operator = o
			}
		}
		if operator == "" {
			return left
		}
		at := p.next().where
		left = p.apply(operator, left, p.binary(level+1), at)
		if left.BitLen() > maxConstantBits {
			p.fail(at, fmt.Sprintf("a result of at most %d bits", maxConstantBits), "%d bits", left.BitLen())
		}
	}
}

func (p *Parser) apply(operator string, a, b *big.Int, at metadata.Position) *big.Int {
	n := new(big.Int)
	switch operator {
	case "|":
		return n.Or(a, b)
	case "^":
		return n.Xor(a, b)
	case "&":
		return n.And(a, b)
	case "+":
		return n.Add(a, b)
	case "-":
		return n.Sub(a, b)
	case "*":
		return n.Mul(a, b)
	case "<<", ">>":
		if !b.IsUint64() || b.Uint64() > maxConstantBits {
			p.fail(at, fmt.Sprintf("a shift by 0 to %d", maxConstantBits), "%s", b)
		}
		if operator == "<<" {
			return n.Lsh(a, uint(b.Uint64()))
		}
		return n.Rsh(a, uint(b.Uint64()))
	}
	if b.Sign() == 0 {
		p.fail(at, "a divisor", "0")
	}
	if operator == "/" {
		return n.Quo(a, b)
	}
	return n.Rem(a, b)
}

// unary reads a number or an expression in parentheses, with any signs before it.
func (p *Parser) unary() *big.Int {
	defer p.enter()()
	switch {
	case p.accept("-"):
		n := p.unary()
		return n.Neg(n)
	case p.accept("+"):
		return p.unary()
	case p.accept("~"):
		n := p.unary()
		return n.Not(n)
	case p.accept("("):
		n := p.binary(0)
		p.expect(")")
		return n
	}
	if p.tok.kind != number {
		p.failToken("a number")
	}
	return new(big.Int).SetUint64(p.next().value.Magnitude)
}
