"""
A model provider: who asks, in which quota scope, may it pass, and its answer in the time that a real model took.

A stream's events come at even steps of at least `STEP_MS`, each with the tokens of its time, so that a process can carry
hundreds of streams; lengths in bytes are real.
"""

import asyncio
from random import Random
from zlib import crc32

import msgspec

from swarmgate.engine.clock import unix_s
from swarmgate.http1.head import RequestHead
from swarmgate.lab.latency import law
from swarmgate.lab.standin.anthropic import Anthropic
from swarmgate.lab.standin.openai import OpenAi
from swarmgate.lab.standin.plan import ProviderPlan
from swarmgate.lab.standin.scope import Scope
from swarmgate.lab.standin.site import Exchange, NumberedEnd, Site
from swarmgate.lab.standin.speech import CHARS_PER_TOKEN, EVENTS, JSON, TEXT, Question, Reply, Speech, read_question
from swarmgate.lab.standin.trouble import Troubles
from swarmgate.lab.standin.witness_log import Seen, WitnessLog

STEP_MS = 100
READ_BEFORE = 8  # of its time with a prompt, this part of a model passes before its first token
DIALECTS: dict[str, Speech] = {"openai": OpenAi(), "anthropic": Anthropic()}


class Provider(Site):
    """One provider's port."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, plan: ProviderPlan, log: WitnessLog, troubles: Troubles, rng: Random
    ) -> None:
        super().__init__(loop)
        self.plan = plan
        self._speech = DIALECTS[plan.dialect]
        self._troubles = troubles
        self._rng = rng
        self._law = law(plan.latency)
        self.scopes = [Scope(plan.name, f"scope-{n + 1}", plan.limits_of(n), log) for n in range(plan.scopes)]
        self._keys = {plan.key_of(number): number for number in range(1, plan.keys + 1)}

    def serve(self, end: NumberedEnd, head: RequestHead, exchange: Exchange) -> None:
        """Judge a request and begin its answer."""
        speech, now_ms = self._speech, self.now_ms
        if head.target.partition(b"?")[0] != speech.path:
            end.respond(*speech.failure("unknown_path"))
            return
        try:
            question = read_question(exchange.body)
        except msgspec.DecodeError:
            end.respond(*speech.failure("bad_body"))
            return
        number = self._keys.get(speech.key(head.fields))
        if number is None:
            end.respond(*speech.failure("dead_key"))
            return
        scope = self.scopes[(number - 1) % len(self.scopes)]
        tokens = question.prompt_tokens
        if self.plan.charge == "prompt_and_largest_output":
            tokens += question.cap_tokens
        reply = self._judge(scope, number, question, tokens)
        status = 200 if reply is None else reply.status
        scope.log.write(
            Seen(now_ms, scope.place, scope.name, f"key-{number}", end.number, question.call, tokens, status)
        )
        if reply is not None:
            end.respond(*reply)
            return
        exchange.left = lambda: scope.depart(self.now_ms, question.call, self._added(question))
        self._begin(end, exchange, scope, question)

    def _judge(self, scope: Scope, number: int, question: Question, tokens: int) -> Reply | None:
        """Why a request is not served; None if it is."""
        now_ms, name, troubles = self.now_ms, self.plan.name, self._troubles
        wrong = troubles.key(name, number, now_ms)
        if wrong is None:
            wrong = next((kind for kind in ("brownout", "capacity") if troubles.strikes(kind, name, now_ms)), None)
        if wrong is not None:
            return self._speech.failure(wrong)
        refusal = scope.arrive(now_ms, tokens)
        if refusal is None:
            return None
        reply = self._speech.refusal(refusal, crc32(question.call.encode()), unix_s())
        return reply._replace(headers=[*self._speech.rates(scope.rests(now_ms), unix_s()), *reply.headers])

    def _added(self, question: Question) -> int:
        return question.output_tokens if self.plan.charge == "prompt_then_output" else 0

    def _begin(self, end: NumberedEnd, exchange: Exchange, scope: Scope, question: Question) -> None:
        now_ms, name, troubles = self.now_ms, self.plan.name, self._troubles
        first_ms, last_ms = self._law.sample(self._rng, question.output_tokens)
        reading_ms = self.plan.reading_us * question.prompt_tokens // 1_000
        first_ms, last_ms = first_ms + reading_ms // READ_BEFORE, last_ms + reading_ms
        slow = troubles.amount("slow", name, now_ms) or 100
        stalled_ms = troubles.stalled_ms(name, now_ms)
        first_ms, last_ms = (stalled_ms + ms * slow // 100 for ms in (first_ms, last_ms))
        headers = self._speech.rates(scope.rests(now_ms), unix_s())
        if not question.is_stream:
            body = self._speech.answer(question, next(self.answers))
            self.later(exchange, last_ms, lambda: self._whole(end, exchange, Reply(200, [JSON, *headers], body)))
            return
        end_early = next((kind for kind in ("overload", "cut") if troubles.strikes(kind, name, now_ms)), "")
        stream = _Stream(self, end, exchange, question, last_ms - first_ms, end_early)
        self.later(exchange, first_ms, lambda: stream.begin([*EVENTS, *headers]))

    @staticmethod
    def _whole(end: NumberedEnd, exchange: Exchange, reply: Reply) -> None:
        exchange.over()
        end.respond(*reply)

    @property
    def speech(self) -> Speech:
        """Its dialect."""
        return self._speech


class _Stream:
    """One streamed answer."""

    __slots__ = ("_at", "_early", "_end", "_exchange", "_number", "_question", "_site", "_step_ms", "_steps")

    def __init__(
        self, site: Provider, end: NumberedEnd, exchange: Exchange, question: Question, ms: int, early: str
    ) -> None:
        self._site, self._end, self._exchange, self._question = site, end, exchange, question
        self._steps = max(1, min(ms // STEP_MS, question.output_tokens))
        self._step_ms = ms / max(1, self._steps - 1)  # the first event comes at once, the last one after all of it
        self._number = next(site.answers)
        self._early = early
        self._at = 0

    def begin(self, headers: list[tuple[bytes, bytes]]) -> None:
        self._end.start_stream(200, headers)
        self._end.write_chunk(self._site.speech.begin(self._question, self._number))
        self._step()

    def _step(self) -> None:
        question, speech = self._question, self._site.speech
        tokens = question.output_tokens
        if self._early and 2 * self._at >= self._steps:
            self._break(speech)
            return
        done, will = (tokens * at // self._steps * CHARS_PER_TOKEN for at in (self._at, self._at + 1))
        self._at += 1
        piece = speech.piece(question, self._number, TEXT[done:will])
        if self._at < self._steps:
            self._end.write_chunk(piece)
            self._site.later(self._exchange, self._step_ms, self._step)
            return
        self._end.write_chunk(piece + speech.end(question, self._number))
        self._exchange.over()
        self._end.finish()

    def _break(self, speech: Speech) -> None:
        self._exchange.over()
        if self._early == "overload":
            self._end.write_chunk(speech.error_event())
            self._end.finish()
        else:
            self._end.cut()
