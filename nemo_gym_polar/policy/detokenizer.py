# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Turns tokens into text one at a time, for byte-level BPE vocabularies such as Qwen's.

A character may span tokens; its text appears with its last byte. Bytes that are no UTF-8 become U+FFFD.
"""

from __future__ import annotations

import codecs

from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import ByteLevel


class Vocabulary:
    """The bytes of every token. Tokens beyond the tokenizer's own (padding of the embedding) have none."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        alphabet, added = _byte_of_character(), tokenizer.get_added_tokens_decoder()
        self._special = {id_ for id_, token in added.items() if token.special}
        self._bytes = {
            id_: text.encode() if id_ in added else bytes(alphabet[character] for character in text)
            for text, id_ in tokenizer.get_vocab(with_added_tokens=True).items()
        }

    def bytes_of(self, token: int) -> bytes:
        return self._bytes.get(token, b"")

    def text_of(self, token: int) -> str:
        """The token by itself; bytes that are part of a character show as U+FFFD."""
        return self.bytes_of(token).decode(errors="replace")

    def is_special(self, token: int) -> bool:
        return token in self._special


class TextStream:
    """Decodes one answer. `skip_special` leaves control tokens out of the text."""

    def __init__(self, vocabulary: Vocabulary, *, skip_special: bool = True) -> None:
        self._vocabulary = vocabulary
        self._skip_special = skip_special
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, token: int) -> str:
        """The text that this token completes."""
        if self._skip_special and self._vocabulary.is_special(token):
            return ""
        return self._decoder.decode(self._vocabulary.bytes_of(token))

    def close(self) -> str:
        """What is left when the answer breaks off inside a character."""
        return self._decoder.decode(b"", final=True)


def _byte_of_character() -> dict[str, int]:
    """The inverse of the byte-level alphabet: printable bytes stand for themselves, the others for U+0100 onwards."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in printable]
    table = {chr(byte): byte for byte in printable} | {chr(0x100 + n): byte for n, byte in enumerate(hidden)}
    if table.keys() != set(ByteLevel.alphabet()):
        raise RuntimeError("the byte-level alphabet of `tokenizers` has changed; decoding tokens would be wrong")
    return table
