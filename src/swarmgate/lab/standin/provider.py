"""
A model provider: who asks, in which quota scope, may it pass, and its answer in the time that a real model took.

A stream's events come at even steps of at least `STEP_MS`, each with the tokens of its time, so that a process can carry
hundreds of streams; lengths in bytes are real.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from random import Random
from zlib import crc32

import msgspec

from swarmgate.engine.clock import unix_s
from swarmgate.http1.head import Header, RequestHead
from swarmgate.lab.errors import LabError
from swarmgate.lab.latency import law
from swarmgate.lab.standin.anthropic import Anthropic
from swarmgate.lab.standin.openai import OpenAi
from swarmgate.lab.standin.plan import ProviderPlan
from swarmgate.lab.standin.question import CHARS_PER_TOKEN, Question
from swarmgate.lab.standin.scope import Scope
from swarmgate.lab.standin.site import Exchange, NumberedEnd, Site
from swarmgate.lab.standin.speech import EVENTS, JSON, Chunks, Reply, Service, Speech
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
        self._dialect = DIALECTS[plan.dialect]
        self._troubles = troubles
        self._rng = rng
        self._law = law(plan.latency)
        self.scopes = [Scope(plan.name, f"scope-{n + 1}", plan.limits_of(n), log) for n in range(plan.scopes)]
        self._keys = {plan.key_of(number): number for number in range(1, plan.keys + 1)}

    def serve(self, end: NumberedEnd, head: RequestHead, exchange: Exchange) -> None:
        """Judge a request and begin its answer."""
        dialect, service = self._dialect, self._dialect.services.get(head.target.partition(b"?")[0])
        if service is None or head.method != b"POST":
            end.respond(*dialect.failure("unknown_path"))
            return
        try:
            question = service.read(exchange.body, next(self.answers))
        except (msgspec.DecodeError, LabError) as error:
            end.respond(*dialect.invalid(f"The body of this request cannot be used: {error}"))
            return
        number = self._keys.get(dialect.key(head.fields))
        if number is None:
            end.respond(*dialect.failure("dead_key"))
            return
        scope = self.scopes[(number - 1) % len(self.scopes)]
        reply = self._arrive(scope, number, question, end.number)
        if reply is not None:
            end.respond(*reply)
            return
        exchange.left = lambda: scope.depart(self.now_ms, question.call, self._added(question))
        self._begin(end, exchange, scope, (service, question))

    def _arrive(self, scope: Scope, number: int, question: Question, connection: int) -> Reply | None:
        """Why a request is not served, None if it is; the witness writes it down."""
        now_ms, tokens = self.now_ms, question.prompt_tokens
        if self.plan.charge == "prompt_and_largest_output":
            tokens += question.cap_tokens
        reply = self._judge(scope, number, question, tokens)
        status = 200 if reply is None else reply.status
        scope.log.write(
            Seen(now_ms, scope.place, scope.name, f"key-{number}", connection, question.call, tokens, status)
        )
        return reply

    def _judge(self, scope: Scope, number: int, question: Question, tokens: int) -> Reply | None:
        """Why a request is not served; None if it is."""
        now_ms, name, troubles = self.now_ms, self.plan.name, self._troubles
        wrong = troubles.key(name, number, now_ms)
        if wrong is None:
            wrong = next((kind for kind in ("brownout", "capacity") if troubles.strikes(kind, name, now_ms)), None)
        if wrong is not None:
            return self._dialect.failure(wrong)
        refusal = scope.arrive(now_ms, tokens)
        if refusal is None:
            return None
        reply = self._dialect.refusal(refusal, crc32(question.call.encode()), unix_s())
        return reply._replace(headers=[*self._dialect.rates(scope.rests(now_ms), unix_s()), *reply.headers])

    def _added(self, question: Question) -> int:
        return question.output_tokens if self.plan.charge == "prompt_then_output" else 0

    def _begin(self, end: NumberedEnd, exchange: Exchange, scope: Scope, asked: tuple[Service, Question]) -> None:
        (service, question), troubles, now_ms, name = asked, self._troubles, self.now_ms, self.plan.name
        first_ms, last_ms = self._law.sample(self._rng, question.output_tokens)
        reading_ms = self.plan.reading_us * question.prompt_tokens // 1_000
        first_ms, last_ms = first_ms + reading_ms // READ_BEFORE, last_ms + reading_ms
        slow = troubles.amount("slow", name, now_ms) or 100
        stalled_ms = troubles.stalled_ms(name, now_ms)
        first_ms, last_ms = (stalled_ms + ms * slow // 100 for ms in (first_ms, last_ms))
        headers = self._dialect.rates(scope.rests(now_ms), unix_s())
        if service.chunks is None or not question.is_stream:
            body = service.answer(question)
            self.later(exchange, last_ms, lambda: self._whole(end, exchange, Reply(200, [JSON, *headers], body)))
            return
        early = next((kind for kind in ("overload", "cut") if troubles.strikes(kind, name, now_ms)), "")
        stream = _Stream(partial(self.later, exchange), service.chunks, question, last_ms - first_ms, early)
        self.later(exchange, first_ms, lambda: stream.begin(end, exchange, [*EVENTS, *headers]))

    @staticmethod
    def _whole(end: NumberedEnd, exchange: Exchange, reply: Reply) -> None:
        exchange.over()
        end.respond(*reply)


class _Stream:
    """One streamed answer; `later` goes on with it after so many ms."""

    __slots__ = ("_at", "_chunks", "_early", "_end", "_exchange", "_later", "_question", "_step_ms", "_steps")
    _end: NumberedEnd
    _exchange: Exchange

    def __init__(
        self,
        later: Callable[[float, Callable[[], None]], None],
        chunks: Chunks,
        question: Question,
        ms: int,
        early: str,
    ) -> None:
        self._later, self._chunks, self._question = later, chunks, question
        self._steps = max(1, min(ms // STEP_MS, question.output_tokens))
        self._step_ms = ms / max(1, self._steps - 1)  # the first event comes at once, the last one after all of it
        self._early = early
        self._at = 0

    def begin(self, end: NumberedEnd, exchange: Exchange, headers: list[Header]) -> None:
        self._end, self._exchange = end, exchange
        end.start_stream(200, headers)
        end.write_chunk(self._chunks.begin(self._question))
        self._step()

    def _step(self) -> None:
        question, chunks, at = self._question, self._chunks, self._at
        if self._early and 2 * at >= self._steps:
            self._break()
            return
        tokens, steps = question.output_tokens, self._steps
        done, will = (tokens * one // steps * CHARS_PER_TOKEN for one in (at, at + 1))
        self._at += 1
        piece = chunks.piece(question, at, question.words[done:will])
        if self._at < steps:
            self._end.write_chunk(piece)
            self._later(self._step_ms, self._step)
            return
        self._end.write_chunk(piece + chunks.end(question, steps))
        self._exchange.over()
        self._end.finish()

    def _break(self) -> None:
        self._exchange.over()
        if self._early == "overload":
            self._end.write_chunk(self._chunks.error_event())
            self._end.finish()
        else:
            self._end.cut()
