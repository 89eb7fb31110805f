"""Explain payload members where their name and kind do not say enough, for docs/journal.md."""

from __future__ import annotations

# event type -> member -> note
MEMBER_NOTES: dict[str, dict[str, str]] = {
    "journal": {
        "id": "of the journal",
        "incompat": "not empty: section 12",
        "compat": "a reader ignores it",
    },
    "repair": {
        "bytes": "bytes that were cut",
        "aside": "name of the file in `.gsd` that keeps them",
        "what": "why",
    },
    "start": {
        "branch": "the git branch that is checked out after this event",
        "auto_loop": "default true: false makes every failure and gap pause",
        "review": "default false: the thorough review is needed",
        "carried": "how a loop of another format stood when it was taken over: `from`, `file`, `iteration`, `round`, `stuck`, `last_unmet`, `started`, `updated`, `last_iteration`, `last_error`, `spent_usd`, `exit_signal`, `history`",
        "counsel": "what is asked for after a failed verification",
        "views": "what shows the loop",
        "task_list": "the client's task list that is mirrored, `auto` for the session's own, `none` for none; absent, a goal mirrors the one that `CLAUDE_CODE_TASK_LIST_ID` names to the hook",
        "session_only": "default false: the end of its session cancels it",
    },
    "iteration": {
        "activity": "the hook saw activity since the last block",
        "delivered": "`seq` of the notes that were delivered",
        "reason": "that was given to the agent",
        "transcript": "bytes of the transcript that were looked at",
        "commit": "the commit that was checked out",
        "signal": "digest of the signal that this event decides",
        "copy": "name of the copy of the hook that decided",
        "active": "the client said that it was going on after a block already",
    },
    "failure": {
        "error": "redacted",
        "task": "absent: the loop itself failed",
        "signature": "equal for errors that are alike; default: the error text",
    },
    "task": {
        "ref": "the client's id of the background task",
        "phase": "only with `running`",
        "fixes": "what was mended on the way",
        "locked": "the digest of each locked file, null for one that is not there",
        "exit_code": "of the test command",
        "undone": "a failed refactoring was undone",
        "mirrored": "it is a task of the client's own list",
        "list": "which list: the session whose own one it is, or its name",
        "named": "that list has a name",
        "condition": "the condition of the gate that it stands for (`criterion:NAME`, `exit`, `review`), or `blocker`; once that holds, the task is complete",
    },
    "gap": {
        "kind": "default `other`",
        "check": "key of the check of the plan that decides it",
    },
    "criterion": {
        "criterion": "its name",
        "stale": "it became unmet because the content changed",
    },
    "plan": {
        "changed": "the file is no longer what was frozen",
        "tasks": "more of them, or new words for pending ones",
        "count": "tasks of the plan",
        "sequential": "waves whose tasks run one at a time",
        "criteria": "added to those of the loop",
        "joins": "a check among them is added to a criterion of that name that has none, which is then not met",
        "must_not": "added to those of the loop",
    },
    "spend": {
        "meter": "whose cumulative figure `total_usd` is",
        "total_usd": "only what it grew by is spent; the first one adds nothing, a smaller one counts from zero",
        "source": "the session or subagent whose transcript was read",
        "counted": "bytes of it that were read",
        "messages": "the last replies that were counted",
    },
    "note": {
        "dismissed": "what was recalled does not apply",
        "source": "the loop that it was learnt in",
    },
    "wait": {
        "about": "key of the question, so that it is asked once",
        "signal": "digest of the signal that this event decides",
        "copy": "name of the copy of the hook that decided",
        "active": "the client said that it was going on after a block already",
        "said": "that was shown to the user",
    },
    "pause": {
        "code": "a pause code, section 5",
        "declined": "it is what came of a no; that answer is not told again",
        "signal": "digest of the signal that this event decides",
        "copy": "name of the copy of the hook that decided",
        "active": "the client said that it was going on after a block already",
        "said": "that was shown to the user",
    },
    "resume": {
        "add": "what is added to each",
        "retry": "failed tasks without a retry left, to each of which this grants one, counted at once",
        "views": "what shows the loop from now on",
        "anew": "what the session did until now is not the loop's",
    },
    "complete": {
        "tree": "digest of the content of the work tree",
        "signal": "digest of the signal that this event decides",
        "copy": "name of the copy of the hook that decided",
        "active": "the client said that it was going on after a block already",
        "said": "that was shown to the user",
    },
    "stop": {
        "code": "why a stop of the agent was allowed",
        "background": "ids of background work that lets the agent rest this once",
        "signal": "digest of the signal that this event decides",
        "copy": "name of the copy of the hook that decided",
        "active": "the client said that it was going on after a block already",
        "said": "that was shown to the user",
    },
    "session": {
        "pid": "process id of the client",
        "transcript": "length of the transcript then",
        "signal": "digest of the signal that told of it",
        "copy": "name of the copy of the hook that was called",
    },
    "checkpoint": {
        "left": "the tag of what a rollback left",
        "reset": "tasks that are pending again",
    },
}
# object in a payload -> member -> note; the generator adds the default of a limit
OBJECT_NOTES: dict[str, dict[str, str]] = {
    "limits": {
        "max_iterations": "0: unlimited",
        "max_retries": "0: none",
        "max_rounds": "0: unlimited",
        "tdd_max_attempts": "for readers; the fold does not use it",
        "stuck_limit": "0: off",
        "idle_limit": "0: off",
        "budget_usd": "absent or 0: unlimited",
        "max_minutes": "absent or 0: unlimited",
        "max_tokens": "absent or 0: unlimited",
    },
    "criterion": {
        "name": "once in a loop",
        "check": "the command that proves it",
        "met": "a loop that was taken over had met it; never with a check",
    },
    "task": {
        "id": "once in a loop",
        "step": "a step of the work",
        "status": "of a loop that was taken over",
        "retries": "likewise",
    },
    "evidence": {
        "tail": "the end of the output, redacted",
        "digest": "digest of the whole output",
        "likeness": "digest of the output without times and addresses",
        "tree": "digest of the content it was taken from",
    },
}
