// Package project reads a project directory into values: settings of several layers, rules and memory for the system prompt, skills, and definitions of subagents. It starts nothing; a
// change on disk is a new [Project] ([Watch]).
//
//	.agents/settings.json         shared settings; .agents/settings.local.json one's own; ~/.agents/settings.json the user's
//	.agents/rules/*.md            rules for the system prompt
//	.agents/skills/NAME/SKILL.md  skills, in the Agent Skills format; the user's in ~/.agents/skills
//	.agents/agents/NAME.md        subagents; the user's in ~/.agents/agents
//	AGENTS.md                     memory for the system prompt, in each directory from the root to the working directory
//
// What comes with a project may have been written by anybody. So what its files forbid counts always, and what they would run or allow (hooks, MCP servers, variables, allow rules,
// directories, a wider sandbox, a looser mode) only after a person approved that content: [Project.Untrusted] shows it, [Approve] remembers it by its hash. An approval is of what the
// settings say. The programs and files that they name are not a part of it, so whoever may write those may change what an approved hook does.
//
// docs/project.md has every key and its default.
package project
