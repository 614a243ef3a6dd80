"""
What a LiteLLM proxy is told beside its models, and what does the same here, if anything does.

Source: https://docs.litellm.ai/docs/proxy/config_settings. A name that stands nowhere in these tables is told as it is.
"""

SECTIONS = frozenset({"litellm_settings", "router_settings", "general_settings"})
OURS = frozenset(  # taken over
    {
        "fallbacks",
        "default_fallbacks",
        "context_window_fallbacks",
        "model_group_alias",
        "max_budget",
        "budget_duration",
        "global_max_parallel_requests",
    }
)

_PATIENCE = (
    "callers say how long they wait (x-swarmgate-timeout); a stream that has not begun after 8 s goes to the next rung"
)
_REST = "a key that is refused rests as long as its answer says, else for 60 s"
_METRICS = "metrics, log lines and the ledger are the control process's: swarmgate report, why, costs"
_STATE = "budgets live in the gate and its state folder"
LIVES_ELSEWHERE = {
    "num_retries": "reads are repeated at most 3 times, writes never",
    "retry_policy": "reads are repeated at most 3 times, writes never",
    "model_group_retry_policy": "reads are repeated at most 3 times, writes never",
    "retry_after": "repeats wait as long as the target says, else longer each time",
    "timeout": _PATIENCE,
    "stream_timeout": _PATIENCE,
    "request_timeout": _PATIENCE,
    "routing_strategy": "keys share the load by what is left of their quotas; a ladder is used from its top",
    "allowed_fails": _REST,
    "allowed_fails_policy": _REST,
    "cooldown_time": _REST,
    "disable_cooldowns": _REST,
    "enable_pre_call_checks": "always so: a rung whose window is too small is passed over",
    "content_policy_fallbacks": "an answer is an answer, whatever it says",
    "drop_params": "requests are sent as they come",
    "modify_params": "requests are sent as they come",
    "cache": "answers are not cached",
    "cache_params": "answers are not cached",
    "callbacks": _METRICS,
    "success_callback": _METRICS,
    "failure_callback": _METRICS,
    "service_callbacks": _METRICS,
    "json_logs": _METRICS,
    "set_verbose": _METRICS,
    "master_key": 'nobody needs a key on loopback; else [access] agent_keys = "required" and swarmgate keys create',
    "database_url": "the ledger is a file in the state folder",
    "environment_variables": "set them for swarmgate up, too",
    "include": "run this for each of the files that it names",
}
ENDINGS = (("redis_", _STATE), ("default_max_internal_user", "write caps into [agents], [teams] or [environments]"))
