// Package remote is an engine whose work is done by somebody else's agent, over A2A.
//
// A run sends what its person said, follows the task that comes of it, and puts the agent's answer on the board. Its steps are effects with
// keys, as those of every engine:
//
//	prepare   hooks see what the run begins with
//	judge/…   hooks and permissions see the message as a call of the tool remote_agent, before it leaves; where they say ask, a person is asked
//	send/1    the message is sent; its outcome is the task's id, on record as soon as the agent has said it
//	watch/1   the task is followed until it ends or waits; its outcome is what it made
//	ask/…     the agent waits for an answer: a person is asked, durably; then send/2, to the same task
//
// # What a crash costs
//
// A run that died after send goes on with its task: it subscribes to it, or reads it, and sends nothing again. A run that died within send,
// before the task's id was on record, can't know whether the message arrived: it sends it again, with the same messageId, which is made from the
// effect's key. An agent that knows a message by its id does the work once; the protocol allows that and does not demand it.
//
// # What binds the agent
//
// Hooks and permissions see each message before it is sent and may change, refuse or ask; those at PostToolUse and PostGeneration, and the run's
// list of tools, have nothing to look at: which tools an agent elsewhere uses can't be seen. A budget's limits of calls and of time hold, a sent
// message being a call; one of tokens or money is an error before anything is sent, since A2A does not tell what a task took. Usage is not
// reported, rather than reported as zero. The agent's instructions and output modes: the first are not sent, an agent elsewhere has its own; the
// second are. A cancel cancels the task, too, within a second and a half; an interrupt leaves it at work, and the resumed run goes on with it.
//
// # The board
//
// The answer is one message of the main channel: the artifacts' parts, then what the agent said at the end. Each artifact is a message of a channel of its
// name, too. The vars remote.task, remote.context and remote.state say where the task stands. The answer remembers the agent's contextId,
// so that the next run of the session goes on in the same conversation.
package remote
