// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/metadata"
)

const (
	domainCount  = lttngagent.Log4j2 + 1
	commandCount = lttngagent.CommandDisableContext + 1
)

// result is the result of a command.
type result uint8

const (
	resultSuccess result = iota
	resultInvalid
	resultUnknownName
	resultOtherCode
	// resultUnsupported: the agent doesn't have the command, and wasn't told.
	resultUnsupported
	// resultNoAnswer: the agent was told, and nothing that could be read came back.
	resultNoAnswer
	// resultTooLarge: the agent has more loggers than the limits allow.
	resultTooLarge
	resultCount
)

func resultOf(code lttngagent.Code) result {
	switch code {
	case lttngagent.Success:
		return resultSuccess
	case lttngagent.Invalid:
		return resultInvalid
	case lttngagent.UnknownName:
		return resultUnknownName
	default:
		return resultOtherCode
	}
}

func domainAttribute(domain lttngagent.Domain) metadata.AttributeLttngAgentDomain {
	return metadata.MapAttributeLttngAgentDomain[domain.String()]
}

var commandAttributes = [commandCount]metadata.AttributeLttngAgentCommand{
	lttngagent.CommandList:             metadata.AttributeLttngAgentCommandList,
	lttngagent.CommandEnable:           metadata.AttributeLttngAgentCommandEnable,
	lttngagent.CommandDisable:          metadata.AttributeLttngAgentCommandDisable,
	lttngagent.CommandRegistrationDone: metadata.AttributeLttngAgentCommandRegistrationDone,
	lttngagent.CommandEnableContext:    metadata.AttributeLttngAgentCommandEnableContext,
	lttngagent.CommandDisableContext:   metadata.AttributeLttngAgentCommandDisableContext,
}

func commandAttribute(command lttngagent.CommandType) metadata.AttributeLttngAgentCommand {
	return commandAttributes[command]
}

var resultAttributes = [resultCount]metadata.AttributeLttngAgentResult{
	resultSuccess:     metadata.AttributeLttngAgentResultSuccess,
	resultInvalid:     metadata.AttributeLttngAgentResultInvalidCommand,
	resultUnknownName: metadata.AttributeLttngAgentResultUnknownName,
	resultOtherCode:   metadata.AttributeLttngAgentResultOtherCode,
	resultUnsupported: metadata.AttributeLttngAgentResultUnsupported,
	resultNoAnswer:    metadata.AttributeLttngAgentResultNoAnswer,
	resultTooLarge:    metadata.AttributeLttngAgentResultTooLarge,
}

func (r result) attribute() metadata.AttributeLttngAgentResult { return resultAttributes[r] }
