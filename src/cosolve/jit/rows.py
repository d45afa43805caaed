"""Sums of products of whole rows with vector registers, from left to right, without a compiler's choice in it."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from cosolve.jit.calls import cgutils, fixed

_LANES, _VECTORS = 8, 4  # numbers in a vector, vectors that are added up at the same time


def row_products(width: int) -> Any:
    """`dot(coefficients, registers, terms, count, target)` for compiled code, on rows of `width` doubles.

    `row at target = sum over terms of coefficient row * register row`; addresses of bytes, `count` >= 1 terms. A term
    is two words: where its coefficients begin and where its register begins. `width` is a multiple of 32.
    """
    signature = types.void(*[types.intp] * 5)
    word, number = ir.IntType(64), ir.DoubleType()
    vector = ir.VectorType(number, _LANES)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        base_c, base_r, terms, count, target = arguments
        sums = [cgutils.alloca_once(builder, vector) for _ in range(_VECTORS)]
        at_terms = builder.inttoptr(terms, word.as_pointer())
        whole = width // (_LANES * _VECTORS)

        def load(address: Any, part: int) -> Any:
            place = builder.add(address, ir.Constant(word, part * _LANES * 8))
            return builder.load(builder.inttoptr(place, vector.as_pointer()), align=8)

        def products(k: Any, shift: Any) -> list[Any]:
            two = builder.shl(k, ir.Constant(word, 1))
            c = builder.load(builder.gep(at_terms, [two]))
            r = builder.load(builder.gep(at_terms, [builder.add(two, ir.Constant(word, 1))]))
            c = builder.add(builder.add(base_c, c), shift)
            r = builder.add(builder.add(base_r, r), shift)
            return [builder.fmul(load(c, m), load(r, m)) for m in range(_VECTORS)]

        with cgutils.for_range(builder, ir.Constant(word, whole), intp=word) as part:
            shift = builder.mul(part.index, ir.Constant(word, _LANES * _VECTORS * 8))
            for place, value in zip(sums, products(ir.Constant(word, 0), shift), strict=True):
                builder.store(value, place)
            with cgutils.for_range(builder, count, start=ir.Constant(word, 1), intp=word) as term:
                for place, value in zip(sums, products(term.index, shift), strict=True):
                    builder.store(builder.fadd(builder.load(place), value), place)
            into = builder.add(builder.add(base_r, target), shift)
            for m, place in enumerate(sums):
                address = builder.add(into, ir.Constant(word, m * _LANES * 8))
                builder.store(builder.load(place), builder.inttoptr(address, vector.as_pointer()), align=8)
        return context.get_dummy_value()

    return fixed(signature, generate)
