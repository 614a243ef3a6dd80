"""
The closed list of reason codes: the one place that says why a call was deferred, refused, retried or given up.

The first word says whose it is: the caller's request, the operator's policy, the target, or the gate itself.
`SENTENCES` is what a person reads; the wire, metrics, journal and docs carry the code.
"""

from enum import StrEnum


class Reason(StrEnum):
    """Why a call did not simply succeed."""

    CALLER_BAD_REQUEST = "caller_bad_request"
    CALLER_KEY_MISSING = "caller_key_missing"
    CALLER_KEY_REFUSED = "caller_key_refused"
    CALLER_KEY_THROTTLED = "caller_key_throttled"
    CALLER_IDENTITY_MISSING = "caller_identity_missing"
    CALLER_UNKNOWN_MODEL = "caller_unknown_model"
    CALLER_UNKNOWN_CALL = "caller_unknown_call"
    CALLER_UNKNOWN_PATH = "caller_unknown_path"
    CALLER_METHOD = "caller_method"
    CALLER_ENCODING = "caller_encoding"
    CALLER_OTHER_SITE = "caller_other_site"
    CALLER_UPGRADE = "caller_upgrade"
    CALLER_TOO_LARGE = "caller_too_large"
    CALLER_WRITE_IN_FLIGHT = "caller_write_in_flight"
    CALLER_WRITE_MISMATCH = "caller_write_mismatch"
    CALLER_WRITE_DONE = "caller_write_done"
    CALLER_EARLY_BYTES = "caller_early_bytes"
    CALLER_LEFT = "caller_left"
    CALLER_DEADLINE = "caller_deadline"
    POLICY_KEY_SCOPE = "policy_key_scope"
    POLICY_SHARED_ACCOUNT = "policy_shared_account"
    POLICY_PRICE_UNKNOWN = "policy_price_unknown"
    POLICY_RATE = "policy_rate"
    POLICY_SLOTS = "policy_slots"
    POLICY_LINE = "policy_line"
    POLICY_PAUSED = "policy_paused"
    POLICY_LARGER_THAN_LIMIT = "policy_larger_than_limit"
    POLICY_CONTEXT_CEILING = "policy_context_ceiling"
    POLICY_AGENT_BACKLOG = "policy_agent_backlog"
    POLICY_KEYS_OUT = "policy_keys_out"
    POLICY_OTHER_DIALECT = "policy_other_dialect"
    POLICY_WINDOW_TOO_SMALL = "policy_window_too_small"
    POLICY_SENDS_USED_UP = "policy_sends_used_up"
    POLICY_HOST = "policy_host"
    POLICY_PORT = "policy_port"
    POLICY_ADDRESS = "policy_address"
    POLICY_TUNNEL_UNMETERED = "policy_tunnel_unmetered"
    POLICY_REDIRECTS = "policy_redirects"
    POLICY_DOWNGRADE = "policy_downgrade"
    POLICY_NAMES = "policy_names"
    TARGET_RATE = "target_rate"
    TARGET_REQUEST_TOO_LARGE = "target_request_too_large"
    TARGET_NO_MONEY = "target_no_money"
    TARGET_CAPACITY = "target_capacity"
    TARGET_DAILY = "target_daily"
    TARGET_CONCURRENCY = "target_concurrency"
    TARGET_BACKOFF = "target_backoff"
    TARGET_BROKEN = "target_broken"
    TARGET_STALLED = "target_stalled"
    TARGET_ERROR = "target_error"
    TARGET_NO_SUCH_NAME = "target_no_such_name"
    TARGET_UNREACHABLE = "target_unreachable"
    TARGET_TLS = "target_tls"
    TARGET_SLOW = "target_slow"
    TARGET_CUT = "target_cut"
    TARGET_ENDLESS = "target_endless"
    TARGET_BAD_OUTPUT = "target_bad_output"
    TARGET_KEY_REFUSED = "target_key_refused"
    TARGET_UNKNOWN_EFFECT = "target_unknown_effect"
    GATE_STORE_LOST = "gate_store_lost"
    GATE_RECORDS_LOST = "gate_records_lost"
    GATE_STORE_UNREACHABLE = "gate_store_unreachable"
    GATE_STORE_SILENT = "gate_store_silent"
    GATE_STORE_LOADING = "gate_store_loading"
    GATE_STORE_BUSY = "gate_store_busy"
    GATE_STORE_CROWDED = "gate_store_crowded"
    GATE_STORE_READ_ONLY = "gate_store_read_only"
    GATE_STORE_MOVED = "gate_store_moved"
    GATE_STORE_FULL = "gate_store_full"
    GATE_STORE_REFUSED = "gate_store_refused"
    GATE_STORE_UNFIT = "gate_store_unfit"
    GATE_STORE_BROKEN = "gate_store_broken"
    GATE_STORE_CLOSED = "gate_store_closed"
    GATE_STOPPING = "gate_stopping"
    GATE_BUSY = "gate_busy"
    GATE_LOOP = "gate_loop"
    GATE_BUG = "gate_bug"


SENTENCES: dict[Reason, str] = {
    Reason.CALLER_BAD_REQUEST: "The request is not one that can be sent; nothing was sent and nothing charged.",
    Reason.CALLER_KEY_MISSING: "This gate asks agents for a key of their own (sgk_...); the operator makes one.",
    Reason.CALLER_KEY_REFUSED: "This agent key is unknown, expired or revoked; ask the operator for a new one.",
    Reason.CALLER_KEY_THROTTLED: "Too many wrong agent keys come from this address; a good one is let in at any time.",
    Reason.CALLER_IDENTITY_MISSING: "The operator of this gate wants to know who causes a call; nothing was sent.",
    Reason.CALLER_UNKNOWN_MODEL: "No route has this model; the nearest names are listed.",
    Reason.CALLER_UNKNOWN_CALL: "No call has this id: neither an open one nor one that ended lately.",
    Reason.CALLER_UNKNOWN_PATH: "This path is not served here.",
    Reason.CALLER_METHOD: "This path does not take this method.",
    Reason.CALLER_ENCODING: "The request's body is compressed; send it as it is, without content-encoding.",
    Reason.CALLER_OTHER_SITE: "A page of another site, or under a name that is not this machine's, may not call; show an agent key.",
    Reason.CALLER_UPGRADE: "WebSockets and other upgrades are not spoken here; use the HTTP endpoints.",
    Reason.CALLER_WRITE_IN_FLIGHT: "A write with this key is still running; ask again for its answer.",
    Reason.CALLER_WRITE_MISMATCH: "This key was used for another request; give each operation a key of its own.",
    Reason.CALLER_WRITE_DONE: "This write is done already; it is not sent again.",
    Reason.CALLER_TOO_LARGE: "The request's body is longer than the gate takes; nothing was sent.",
    Reason.CALLER_EARLY_BYTES: "Bytes stand behind the head of CONNECT before it was answered; wait for the answer.",
    Reason.CALLER_LEFT: "The caller closed its connection; the attempt was cancelled.",
    Reason.CALLER_DEADLINE: "The caller's own time was over before an answer began.",
    Reason.POLICY_KEY_SCOPE: "This agent key may not call that; the operator sets what it may.",
    Reason.POLICY_SHARED_ACCOUNT: "What is kept at this account is several teams' own, and the provider cannot tell them apart.",
    Reason.POLICY_PRICE_UNKNOWN: "A cap in money holds for this caller and the price of the model is not known; [prices] can tell it, or `provider` of the target where its host is no known one.",
    Reason.POLICY_RATE: "A budget that the call takes from is used up for now; it refills by time.",
    Reason.POLICY_SLOTS: "Every slot or reservation of this budget is in use; one must end first.",
    Reason.POLICY_LINE: "Better calls stand before this one in the line of the budget.",
    Reason.POLICY_PAUSED: "The operator has paused this budget; nobody knows for how long.",
    Reason.POLICY_LARGER_THAN_LIMIT: "The call needs more than this class may ever hold, all its answers together; make it smaller or raise the limit.",
    Reason.POLICY_CONTEXT_CEILING: "The prompt is longer than its task type may read at once; it was not sent.",
    Reason.POLICY_AGENT_BACKLOG: "This agent already has as many calls in the line as one agent may.",
    Reason.POLICY_KEYS_OUT: "Every key of this target is out.",
    Reason.POLICY_HOST: "The operator does not let this host be called.",
    Reason.POLICY_PORT: "The operator does not let this port be called; `ports` in the host's policy lists those that may.",
    Reason.POLICY_ADDRESS: "The host is, or leads to, an address that may not be called; only an operator's pin can open it.",
    Reason.POLICY_TUNNEL_UNMETERED: "Requests inside a tunnel cannot be counted and this host has a limit on them.",
    Reason.POLICY_REDIRECTS: "Too many redirects, one after the other.",
    Reason.POLICY_DOWNGRADE: "The redirect leads from https to http; it is not followed.",
    Reason.POLICY_NAMES: "Too many new names of this domain were looked up lately; one more may be in a second.",
    Reason.POLICY_OTHER_DIALECT: "No rung of this ladder speaks as the caller does; call its models by another path.",
    Reason.POLICY_WINDOW_TOO_SMALL: "The call is larger than the window of every model on this ladder.",
    Reason.POLICY_SENDS_USED_UP: "This rung was not tried: a call is sent at most four times, its repeats and rungs together.",
    Reason.TARGET_RATE: "The target said that its rate limit is reached.",
    Reason.TARGET_REQUEST_TOO_LARGE: "The target's limit is smaller than this request; waiting cannot help.",
    Reason.TARGET_NO_MONEY: "The key's account has no credit; a person must act.",
    Reason.TARGET_CAPACITY: "The target has no capacity for anybody now; other keys cannot help.",
    Reason.TARGET_DAILY: "The target's daily quota is used up until its reset.",
    Reason.TARGET_CONCURRENCY: "The target takes no more calls at once.",
    Reason.TARGET_BACKOFF: "The target asked for a pause, which is not over.",
    Reason.TARGET_BROKEN: "Most sends to the target failed lately; it gets one probe at a time until one succeeds.",
    Reason.TARGET_STALLED: "The target has refused for a quarter of an hour, or asked for a pause that long.",
    Reason.TARGET_ERROR: "The target answered with an error.",
    Reason.TARGET_NO_SUCH_NAME: "The target's name does not exist; look at its spelling.",
    Reason.TARGET_UNREACHABLE: "No connection to the target could be made.",
    Reason.TARGET_TLS: "The target's certificate is not valid for its name, or not by an authority known here; nothing was sent.",
    Reason.TARGET_SLOW: "The target did not answer in time.",
    Reason.TARGET_CUT: "The target's answer ended before it was whole.",
    Reason.TARGET_ENDLESS: "The target's answer went on far beyond what the call allows or any answer needs; it was stopped.",
    Reason.TARGET_BAD_OUTPUT: "The model's answer is not what the caller's schema asks for.",
    Reason.TARGET_KEY_REFUSED: "The target does not accept the gate's key; a person must replace it.",
    Reason.TARGET_UNKNOWN_EFFECT: "A write left and its answer was lost; it is not repeated, since it may have happened.",
    Reason.GATE_STORE_LOST: "The shared store does not answer and this budget is closed without it.",
    Reason.GATE_RECORDS_LOST: "What must be on record (a keyed write, money under a cap) cannot be kept now; nothing was sent.",
    Reason.GATE_STORE_UNREACHABLE: "There is no connection to the shared store, or it broke.",
    Reason.GATE_STORE_SILENT: "The shared store did not answer in time: it is frozen, overloaded or cut off.",
    Reason.GATE_STORE_LOADING: "The shared store reads its data after a start.",
    Reason.GATE_STORE_BUSY: "The shared store runs somebody's long script.",
    Reason.GATE_STORE_CROWDED: "More calls of this gate wait for the shared store than it decides in time.",
    Reason.GATE_STORE_READ_ONLY: "The shared store is a replica, or it may not write.",
    Reason.GATE_STORE_MOVED: "Another node of the store's cluster has our slot, or none has.",
    Reason.GATE_STORE_FULL: "The shared store is out of memory or disk, or our own queue to it is at its cap.",
    Reason.GATE_STORE_REFUSED: "The shared store refused our credentials or permissions.",
    Reason.GATE_STORE_UNFIT: "The shared store is too old, or it may evict budgets.",
    Reason.GATE_STORE_BROKEN: "The shared store's answer is not one of our script's.",
    Reason.GATE_STORE_CLOSED: "The gate has closed its connection to the shared store.",
    Reason.GATE_STOPPING: "The gate is stopping; repeat the call at its successor.",
    Reason.GATE_BUSY: "The gate has as many calls open as it may.",
    Reason.GATE_LOOP: "The request passed this gate already; a target or a proxy points back at it.",
    Reason.GATE_BUG: "The gate failed by its own fault; the log has the details.",
}
